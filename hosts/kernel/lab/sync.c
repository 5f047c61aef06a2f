/* SPDX-License-Identifier: MIT */
/*
 * sync.c - what the tasks of a workload wait for, with the simulator's meaning.
 *
 * Whoever can complete another process's call does so: a lock is handed over,
 * bytes go to the reader that has waited longest. So nobody is woken in vain,
 * waiters leave in the order they came, and a policy makes the same decisions as
 * in hosts/sim/interpret.c, which these functions follow in their order.
 *
 *	syncs() -> [struct file] -> struct syncs -> pages of objects
 *	                                              |
 *	          a blocked process's stack: waiter <-+-> waiter <-> ...
 *
 * One lock per set guards everything in it, waiters included.
 *
 * Must stay true: a waiter is off every list before its process returns.
 * Read next: user/play.c, the user.
 */
#include "sync.h"

#include <schedlab/sched.h>

#include "file.h"
#include "job.h"
#include "overhead.h"
#include "sched.h"
#include "sysarg.h"

#define OBJECTS_PER_PAGE (PGSIZE / sizeof(struct sync_object))
#define PAGES_MAX (SYNC_OBJECTS_MAX / OBJECTS_PER_PAGE + 1)

/* A process that waits; in a list of its object. */
struct waiter {
	struct proc *proc;
	struct waiter *next;
	u64 need;		/* bytes to move, or the amount to take */
	u64 lock_plus_1;	/* AWAIT: to have again before it returns */
	bool is_done;		/* its call is complete, by somebody else's */
	struct waiters *list;	/* that it is in, or NULL */
	struct syncs *set;
	struct sync_object *device;
	struct timer timer;	/* of a request that the device works on */
};

struct waiters {
	struct waiter *first;	/* has waited longest */
	struct waiter *last;
};

struct sync_object {
	u32 kind;		/* enum sync_kind */
	u32 nr_active;		/* requests that the device works on */
	u64 param[3];
	u64 level;		/* pipe: bytes in it; barrier: arrived; counter */
	u64 off_at;		/* counter: 0, or see SYNC_OFF_AT */
	struct proc *owner;	/* lock */
	struct waiters waiters;	/* for the lock, the barrier, data, the device */
	struct waiters senders;
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

static void add_waiter(struct waiters *list, struct waiter *w)
{
	w->next = NULL;
	w->list = list;
	if (list->first)
		list->last->next = w;
	else
		list->first = w;
	list->last = w;
}

static struct waiter *take_waiter(struct waiters *list)
{
	struct waiter *w = list->first;

	if (!w)
		return NULL;
	list->first = w->next;
	w->list = NULL;
	return w;
}

/* It gives up. The list is searched: who is killed may stand anywhere. */
static void drop_waiter(struct waiter *w)
{
	struct waiter *before = NULL;

	if (!w->list)
		return;
	for (struct waiter *at = w->list->first; at != w; at = at->next)
		before = at;
	if (before)
		before->next = w->next;
	else
		w->list->first = w->next;
	if (w->list->last == w)
		w->list->last = before;
	w->list = NULL;
}

/* Context: the set's lock is held. */
static void complete(struct waiter *w, u64 wake_flags)
{
	w->is_done = true;
	sched_wake(w->proc, wake_flags);
}

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
	for (;;) {
		/* A kill before this is seen here, one after it keeps us awake. */
		if (!w->is_done && killed(w->proc))
			return -1;
		block(s);
		if (w->is_done)
			break;
		sched_prepare_block(w->proc, w->proc->task.wait_for);
	}
	return 0;
}

static int wait_or_give_up(struct syncs *s, struct waiter *w)
{
	int err = wait_done(s, w);

	if (err)
		drop_waiter(w);
	return err;
}

/* ---- locks and conditions ------------------------------------------------- */

static int take_lock(struct syncs *s, struct sync_object *o, struct waiter *w)
{
	if (!o->owner) {
		o->owner = w->proc;
		return 0;
	}
	if (o->owner == w->proc)
		return -1;
	sched_prepare_block(w->proc, "lock");
	add_waiter(&o->waiters, w);
	return wait_or_give_up(s, w);
}

static int drop_lock(struct sync_object *o, struct proc *p)
{
	struct waiter *next;

	if (o->owner != p)
		return -1;
	next = take_waiter(&o->waiters);
	o->owner = next ? next->proc : NULL;
	if (next)
		complete(next, 0);
	return 0;
}

static struct sync_object *lock_of(struct syncs *s, u64 lock_plus_1)
{
	if (lock_plus_1 < 1 || lock_plus_1 > s->nr ||
	    object_of(s, lock_plus_1 - 1)->kind != SYNC_LOCK)
		return NULL;
	return object_of(s, lock_plus_1 - 1);
}

static int await(struct syncs *s, struct sync_object *o, struct waiter *w,
		 u64 lock_plus_1)
{
	struct sync_object *lock = NULL;

	if (lock_plus_1) {
		lock = lock_of(s, lock_plus_1);
		if (!lock || drop_lock(lock, w->proc))
			return -1;
	}
	w->lock_plus_1 = lock_plus_1;
	sched_prepare_block(w->proc, "condition");
	add_waiter(&o->waiters, w);
	return wait_or_give_up(s, w);
}

/* @w has been signalled: wake it with its lock, or queue it for that. */
static void leave_condition(struct syncs *s, struct waiter *w)
{
	struct sync_object *lock = lock_of(s, w->lock_plus_1);

	if (lock && lock->owner) {
		WRITE_ONCE(w->proc->task.wait_for, "lock");
		add_waiter(&lock->waiters, w);
		return;
	}
	if (lock)
		lock->owner = w->proc;
	complete(w, 0);
}

static int signal(struct syncs *s, struct sync_object *o, bool all)
{
	struct waiter *w;

	while ((w = take_waiter(&o->waiters))) {
		leave_condition(s, w);
		if (!all)
			break;
	}
	return 0;
}

/* ---- pipes ---------------------------------------------------------------- */

/* Move what can be moved for one waiter. Return: true if its call is complete. */
static bool move_bytes(struct sync_object *o, struct waiter *w, bool is_send)
{
	u64 can = is_send ? o->param[0] - o->level : o->level;
	u64 bytes = w->need < can ? w->need : can;

	w->need -= bytes;
	o->level = is_send ? o->level + bytes : o->level - bytes;
	return !w->need;
}

/* Let the first waiter move what it can. Return: whether a byte has moved. */
static bool advance(struct sync_object *o, bool is_send)
{
	struct waiters *list = is_send ? &o->senders : &o->waiters;
	struct waiter *w = list->first;
	u64 needed;

	if (!w)
		return false;
	needed = w->need;
	/* Whoever is complete may be gone as soon as the lock is dropped. */
	if (move_bytes(o, w, is_send))
		complete(take_waiter(list), SCX_WAKE_SYNC);
	return w->need != needed;
}

/* A message larger than the pipe goes through it in several steps. */
static void settle_pipe(struct sync_object *o)
{
	bool has_changed;

	do {
		has_changed = advance(o, false);
		has_changed |= advance(o, true);
	} while (has_changed);
}

static int use_pipe(struct syncs *s, struct sync_object *o, struct waiter *w,
		    u64 bytes, bool is_send)
{
	struct waiters *list = is_send ? &o->senders : &o->waiters;

	w->need = bytes;
	if (!list->first && move_bytes(o, w, is_send)) {
		settle_pipe(o);
		return 0;
	}
	/* Settling may complete it at once: then it will not block. */
	sched_prepare_block(w->proc, is_send ? "room in pipe" : "data in pipe");
	add_waiter(list, w);
	settle_pipe(o);
	return wait_or_give_up(s, w);
}

/* ---- barriers and counters ------------------------------------------------ */

static int arrive(struct syncs *s, struct sync_object *o, struct waiter *w)
{
	struct waiter *other;

	if (++o->level < o->param[0]) {
		sched_prepare_block(w->proc, "barrier");
		add_waiter(&o->waiters, w);
		return wait_or_give_up(s, w);
	}
	o->level = 0;
	while ((other = take_waiter(&o->waiters)))
		complete(other, 0);
	return 0;
}

static void add(struct sync_object *o, u64 amount)
{
	o->level += amount;
	if (o->off_at && o->level >= o->off_at)
		job_end_at(now_ns());
	while (o->waiters.first && o->waiters.first->need <= o->level) {
		o->level -= o->waiters.first->need;
		complete(take_waiter(&o->waiters), 0);
	}
}

static int take(struct syncs *s, struct sync_object *o, struct waiter *w,
		u64 amount)
{
	if (!o->waiters.first && amount <= o->level) {
		o->level -= amount;
		return 0;
	}
	w->need = amount;
	sched_prepare_block(w->proc, "children");
	add_waiter(&o->waiters, w);
	return wait_or_give_up(s, w);
}

/* ---- the device: hosts/sim/device.c in real time --------------------------- */

static void start_request(struct sync_object *o, struct waiter *w);

static void request_done(struct timer *timer, void *arg)
{
	struct waiter *w = arg;
	struct syncs *s = w->set;
	struct sync_object *o = w->device;

	(void)timer;
	acquire(&s->lock);
	o->nr_active--;
	if (o->waiters.first)
		start_request(o, take_waiter(&o->waiters));
	complete(w, 0);
	release(&s->lock);
}

static void start_request(struct sync_object *o, struct waiter *w)
{
	u64 took_ns = o->param[0] + (w->need * o->param[1] + 1023) / 1024;

	o->nr_active++;
	timer_start(&w->timer, now_ns() + took_ns, request_done, w);
}

/*
 * A killed process waits for a request that has begun: the timer is on its
 * stack, and its end cannot be far.
 */
static int request(struct syncs *s, struct sync_object *o, struct waiter *w,
		   u64 bytes)
{
	w->need = bytes;
	w->set = s;
	w->device = o;
	sched_prepare_block(w->proc, "device");
	if (o->nr_active < o->param[2])
		start_request(o, w);
	else
		add_waiter(&o->waiters, w);
	if (!wait_done(s, w))
		return 0;
	if (w->list) {
		drop_waiter(w);
		return -1;
	}
	while (!w->is_done) {
		sched_prepare_block(w->proc, "device");
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

	if (at_exit->nr == SYNC_AT_EXIT_MAX ||
	    (at_exit->file && at_exit->file != f))
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
		return spec->param[0] >> 40 == 0 && spec->param[1] >> 32 == 0 &&
		       spec->param[2] > 0;
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
		fileclose(f);	/* which frees the set */
	return fd;
}

/* The kind of object that each op is for. */
static const u8 kind_of_op[SYNC_NR_OPS] = {
	[SYNC_TAKE_LOCK] = SYNC_LOCK,	[SYNC_DROP_LOCK] = SYNC_LOCK,
	[SYNC_SEND] = SYNC_PIPE,	[SYNC_RECV] = SYNC_PIPE,
	[SYNC_ARRIVE] = SYNC_BARRIER,	[SYNC_AWAIT] = SYNC_CONDITION,
	[SYNC_SIGNAL] = SYNC_CONDITION,	[SYNC_ADD] = SYNC_COUNTER,
	[SYNC_ADD_AT_EXIT] = SYNC_COUNTER, [SYNC_TAKE] = SYNC_COUNTER,
	[SYNC_REQUEST] = SYNC_DEVICE,	[SYNC_OFF_AT] = SYNC_COUNTER,
};

/* Context: the set's lock is held, as it is afterwards. */
static int do_op(struct syncs *s, struct sync_object *o, int op, u64 arg)
{
	struct waiter w = { .proc = myproc() };

	switch (op) {
	case SYNC_TAKE_LOCK:
		return take_lock(s, o, &w);
	case SYNC_DROP_LOCK:
		return drop_lock(o, w.proc);
	case SYNC_SEND:
	case SYNC_RECV:
		return use_pipe(s, o, &w, arg, op == SYNC_SEND);
	case SYNC_ARRIVE:
		return arrive(s, o, &w);
	case SYNC_AWAIT:
		return await(s, o, &w, arg);
	case SYNC_SIGNAL:
		return signal(s, o, arg);
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
	o = object_of(s, idx);	/* kinds do not change */
	if (o->kind != kind_of_op[op])
		return SYS_ERROR;
	if (op == SYNC_ADD_AT_EXIT)
		return promise(f, idx, arg_u64(3));
	acquire(&s->lock);
	result = do_op(s, o, op, arg_u64(3));
	release(&s->lock);
	return result;
}
