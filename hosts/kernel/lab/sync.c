/* SPDX-License-Identifier: MIT */
/*
 * sync.c - what the tasks of a workload wait for, with the simulator's meaning.
 *
 * Locks, pipes, conditions and barriers are player/objects.c's, so that a policy
 * makes the same decisions as in the simulator. What is added is the kernel's:
 * blocking, a kill meanwhile, system calls, and two kinds that only it has,
 * counters (for children) and the device.
 *
 *	syncs() -> [struct file] -> struct syncs -> pages of objects
 *	                                              |
 *	          a blocked process's stack: waiter <-+-> waiter <-> ...
 *
 * One lock per set guards everything in it, waiters included.
 *
 * Invariant: a waiter is off every list before its process returns.
 * Read next: player/objects.c; user/play.c, the user.
 */
#include "sync.h"

#include <schedlab/sched.h>

#include "file.h"
#include "job.h"
#include "objects.h"
#include "overhead.h"
#include "sched.h"
#include "sysarg.h"

#define OBJECTS_PER_PAGE (PGSIZE / sizeof(struct sync_object))
#define PAGES_MAX (SYNC_OBJECTS_MAX / OBJECTS_PER_PAGE + 1)

/* A process that waits; in a list of its object. */
struct waiter {
	struct sl_waiter waiter; /* first: sl_wait_wake() finds the rest by it */
	bool is_done;		 /* its call is complete, by that of another task */
	struct syncs *set;
	struct sync_object *device;
	struct timer timer; /* of a request that the device works on */
};

struct sync_object {
	u32 kind;		 /* enum sync_kind */
	u32 nr_active;		 /* requests that the device works on */
	u64 param[3];		 /* device */
	u64 off_at;		 /* counter: 0, or see SYNC_OFF_AT */
	struct sl_object object; /* level: the counter's, too; waiters: the device's */
};

struct syncs {
	struct spinlock lock;
	u32 nr;
	struct sync_object *pages[PAGES_MAX];
};

_Static_assert(sizeof(struct syncs) <= PGSIZE, "a set fits a page");

static struct sync_object *object_of(struct syncs *s, u64 idx)
{
	return &s->pages[idx / OBJECTS_PER_PAGE][idx % OBJECTS_PER_PAGE];
}

/* ---- waiting -------------------------------------------------------------- */

/* ---- what player/objects.c asks; the set's lock is held -------------------- */

void sl_wait_block(struct sl_waiter *w, const char *why)
{
	sched_prepare_block(w->task, why);
}

void sl_wait_change(struct sl_waiter *w, const char *why)
{
	struct proc *p = w->task;

	WRITE_ONCE(p->task.wait_for, why);
}

void sl_wait_wake(struct sl_waiter *w, bool is_sync, const struct sl_waiter *by)
{
	(void)by;
	((struct waiter *)w)->is_done = true;
	sched_wake(w->task, is_sync ? SCX_WAKE_SYNC : 0);
}

/* ---- waiting -------------------------------------------------------------- */

/* After sched_prepare_block(). Context: the set's lock is held, as it is afterwards. */
static void block(struct syncs *s)
{
	push_off();
	release(&s->lock);
	schedule(SL_WHY_BLOCK);
	pop_off();
	acquire(&s->lock);
}

/*
 * Block until the call is complete. A call that completed meanwhile asks the
 * core once all the same, as the simulator does: the slice may be used up.
 * Context: the set's lock is held, as it is afterwards.
 * Return: 0, or -1 when killed; the waiter may then still be in a list.
 */
static int wait_done(struct syncs *s, struct waiter *w)
{
	struct proc *p = w->waiter.task;

	for (;;) {
		/* A kill before this is seen here, one after it keeps the process awake. */
		if (!w->is_done && killed(p))
			return -1;
		block(s);
		if (w->is_done)
			break;
		sched_prepare_block(p, p->task.wait_for);
	}
	return 0;
}

static int wait_or_give_up(struct syncs *s, struct waiter *w)
{
	int err = wait_done(s, w);

	if (err)
		sl_waiter_drop(&w->waiter);
	return err;
}

/* Return: 0 when the call is complete, or -1. */
static int finish(struct syncs *s, struct waiter *w, enum sl_object_result result)
{
	if (result == SL_OBJECT_WAITS)
		return wait_or_give_up(s, w);
	return result == SL_OBJECT_DONE ? 0 : -1;
}

static int await(struct syncs *s, struct sync_object *o, struct waiter *w, u64 lock_plus_1)
{
	struct sl_object *lock = NULL;

	if (lock_plus_1) {
		if (lock_plus_1 > s->nr || object_of(s, lock_plus_1 - 1)->kind != SYNC_LOCK)
			return -1;
		lock = &object_of(s, lock_plus_1 - 1)->object;
	}
	return finish(s, w, sl_object_await(&o->object, &w->waiter, lock));
}

/* ---- counters -------------------------------------------------------------- */

static void add(struct sync_object *o, u64 amount)
{
	struct sl_object *counter = &o->object;
	struct sl_waiter *w;

	counter->level += amount;
	if (o->off_at && counter->level >= o->off_at)
		job_end_at(now_ns());
	while ((w = counter->waiters.first) && w->need <= counter->level) {
		counter->level -= w->need;
		sl_wait_wake(sl_waiters_take(&counter->waiters), false, NULL);
	}
}

static int take(struct syncs *s, struct sync_object *o, struct waiter *w, u64 amount)
{
	struct sl_object *counter = &o->object;

	if (!counter->waiters.first && amount <= counter->level) {
		counter->level -= amount;
		return 0;
	}
	w->waiter.need = amount;
	sl_wait_block(&w->waiter, "children");
	sl_waiters_add(&counter->waiters, &w->waiter);
	return wait_or_give_up(s, w);
}

/* ---- the device: hosts/sim/device.c in real time --------------------------- */

static void start_request(struct sync_object *o, struct waiter *w);

static void request_done(struct timer *timer, void *arg)
{
	struct waiter *w = arg;
	struct syncs *s = w->set;
	struct sync_object *o = w->device;
	struct sl_waiter *next;

	(void)timer;
	acquire(&s->lock);
	o->nr_active--;
	next = sl_waiters_take(&o->object.waiters);
	if (next)
		start_request(o, (struct waiter *)next);
	sl_wait_wake(&w->waiter, false, NULL);
	release(&s->lock);
}

static void start_request(struct sync_object *o, struct waiter *w)
{
	u64 took_ns = o->param[0] + (w->waiter.need * o->param[1] + 1023) / 1024;

	o->nr_active++;
	timer_start(&w->timer, now_ns() + took_ns, request_done, w);
}

/*
 * A killed process waits for a request that has begun: the timer is on its
 * stack, and its end cannot be far.
 */
static int request(struct syncs *s, struct sync_object *o, struct waiter *w, u64 bytes)
{
	w->waiter.need = bytes;
	w->set = s;
	w->device = o;
	sl_wait_block(&w->waiter, "device");
	if (o->nr_active < o->param[2])
		start_request(o, w);
	else
		sl_waiters_add(&o->object.waiters, &w->waiter);
	if (!wait_done(s, w))
		return 0;
	if (w->waiter.list) {
		sl_waiter_drop(&w->waiter);
		return -1;
	}
	while (!w->is_done) {
		sl_wait_block(&w->waiter, "device");
		block(s);
	}
	return 0;
}

/* ---- the end of a process -------------------------------------------------- */

void sync_exit(struct sync_at_exit *at_exit)
{
	struct file *f = at_exit->file;
	struct syncs *s;

	if (!f)
		return;
	s = f->object;
	acquire(&s->lock);
	for (u32 i = 0; i < at_exit->nr; i++)
		add(object_of(s, at_exit->idx[i]), at_exit->amount[i]);
	release(&s->lock);
	*at_exit = (struct sync_at_exit){ 0 };
	fileclose(f);
}

static int promise(struct file *f, u32 idx, u64 amount)
{
	struct sync_at_exit *at_exit = &myproc()->lab.at_exit;

	if (at_exit->nr == SYNC_AT_EXIT_MAX || (at_exit->file && at_exit->file != f))
		return -1;
	if (!at_exit->file)
		at_exit->file = filedup(f);
	at_exit->idx[at_exit->nr] = idx;
	at_exit->amount[at_exit->nr++] = amount;
	return 0;
}

/* ---- the system calls ------------------------------------------------------ */

void syncs_free(struct syncs *s)
{
	for (u32 i = 0; i < PAGES_MAX; i++)
		kfree(s->pages[i]);
	kfree(s);
}

static void close_syncs(struct file *f)
{
	syncs_free(f->object);
}

static const struct file_ops sync_file_ops = { .close = close_syncs };

static bool is_good_spec(const struct sync_spec *spec)
{
	switch (spec->kind) {
	case SYNC_LOCK:
	case SYNC_CONDITION:
	case SYNC_COUNTER:
		return true;
	case SYNC_PIPE:
	case SYNC_BARRIER:
		return spec->param[0] > 0;
	case SYNC_DEVICE:
		/* So that no product or sum of them wraps: minutes per KiB. */
		return spec->param[0] >> 40 == 0 && spec->param[1] >> 32 == 0 && spec->param[2] > 0;
	}
	return false;
}

/* Return: 0, or -1: out of memory, or a bad pointer or specification. */
static int fill_syncs(struct syncs *s, uint64 specs)
{
	for (u32 i = 0; i < s->nr; i++) {
		struct sync_object **page = &s->pages[i / OBJECTS_PER_PAGE];
		struct sync_object *o;
		struct sync_spec spec;

		if (!*page)
			*page = kalloc_zeroed();
		if (!*page || copyin(&spec, specs + i * sizeof(spec), sizeof(spec)) ||
		    !is_good_spec(&spec))
			return -1;
		o = object_of(s, i);
		o->kind = spec.kind;
		for (u32 j = 0; j < 3; j++)
			o->param[j] = spec.param[j];
		o->object.size = spec.param[0];
	}
	return 0;
}

/* int syncs(const struct sync_spec *specs, int nr_specs) */
uint64 sys_syncs(void)
{
	int nr = arg_int(1);
	struct syncs *s;
	struct file *f;
	int fd;

	if (nr < 1 || nr > SYNC_OBJECTS_MAX)
		return SYS_ERROR;
	s = kalloc_zeroed();
	if (!s)
		return SYS_ERROR;
	s->nr = nr;
	initlock(&s->lock, "syncs");
	f = fill_syncs(s, arg_u64(0)) ? NULL : filealloc();
	if (!f) {
		syncs_free(s);
		return SYS_ERROR;
	}
	f->ops = &sync_file_ops;
	f->object = s;
	fd = fdalloc(f);
	if (fd < 0)
		fileclose(f); /* which frees the set */
	return fd;
}

/* The kind of object that each op is for. */
static const u8 kind_of_op[SYNC_NR_OPS] = {
	[SYNC_TAKE_LOCK] = SYNC_LOCK,	   [SYNC_DROP_LOCK] = SYNC_LOCK,
	[SYNC_SEND] = SYNC_PIPE,	   [SYNC_RECV] = SYNC_PIPE,
	[SYNC_ARRIVE] = SYNC_BARRIER,	   [SYNC_AWAIT] = SYNC_CONDITION,
	[SYNC_SIGNAL] = SYNC_CONDITION,	   [SYNC_ADD] = SYNC_COUNTER,
	[SYNC_ADD_AT_EXIT] = SYNC_COUNTER, [SYNC_TAKE] = SYNC_COUNTER,
	[SYNC_REQUEST] = SYNC_DEVICE,	   [SYNC_OFF_AT] = SYNC_COUNTER,
};

/* Context: the set's lock is held, as it is afterwards. */
static int do_op(struct syncs *s, struct sync_object *o, int op, u64 arg)
{
	struct waiter w = { .waiter.task = myproc() };

	switch (op) {
	case SYNC_TAKE_LOCK:
		return finish(s, &w, sl_object_lock(&o->object, &w.waiter));
	case SYNC_DROP_LOCK:
		return finish(s, &w, sl_object_unlock(&o->object, &w.waiter));
	case SYNC_SEND:
		return finish(s, &w, sl_object_send(&o->object, &w.waiter, arg));
	case SYNC_RECV:
		return finish(s, &w, sl_object_recv(&o->object, &w.waiter, arg));
	case SYNC_ARRIVE:
		return finish(s, &w, sl_object_arrive(&o->object, &w.waiter));
	case SYNC_AWAIT:
		return await(s, o, &w, arg);
	case SYNC_SIGNAL:
		sl_object_signal(&o->object, &w.waiter, arg);
		return 0;
	case SYNC_ADD:
		add(o, arg);
		return 0;
	case SYNC_TAKE:
		return take(s, o, &w, arg);
	case SYNC_REQUEST:
		return arg >> 31 ? -1 : request(s, o, &w, arg);
	case SYNC_OFF_AT:
		o->off_at = arg;
		return 0;
	}
	return -1;
}

/* int syncop(int fd, int idx, int op, unsigned long arg) */
uint64 sys_syncop(void)
{
	struct file *f = fd_file(arg_int(0));
	u32 idx = arg_int(1);
	u32 op = arg_int(2);
	struct sync_object *o;
	struct syncs *s;
	int result;

	if (!f || f->ops != &sync_file_ops || op >= SYNC_NR_OPS)
		return SYS_ERROR;
	s = f->object;
	if (idx >= s->nr)
		return SYS_ERROR;
	o = object_of(s, idx); /* kinds do not change */
	if (o->kind != kind_of_op[op])
		return SYS_ERROR;
	if (op == SYNC_ADD_AT_EXIT)
		return promise(f, idx, arg_u64(3));
	acquire(&s->lock);
	result = do_op(s, o, op, arg_u64(3));
	release(&s->lock);
	return result;
}
