/* SPDX-License-Identifier: MIT */
/*
 * verbs.c - what each verb of a workload program is on user threads.
 *
 * Called by the threads of a run, each for itself. Only children are waited for with
 * a semaphore of the library: their parent alone waits there.
 *
 * Read next: player/player.c, which calls these; player/objects.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runner.h"

#define SPINS 8

static struct play *play_of(struct sl_player *p)
{
	return p->host;
}

static u64 now_ns(struct sl_player *p)
{
	(void)p;
	return ut_now_ns();
}

static u64 cpu_time_ns(u64 charge_from_ns)
{
	u64 ns;

	ut_disable();
	ns = ut_own_cpu_time_ns(charge_from_ns);
	ut_enable();
	return ns;
}

static int use_cpu(struct sl_player *p, u64 ns)
{
	u64 until_ns = cpu_time_ns(UT_STOLEN_FROM_NS) + ns;

	(void)p;
	do {
		while (cpu_time_ns(UT_STOLEN_FROM_NS) < until_ns) {
			for (u32 i = 0; i < SPINS; i++)
				ut_pause();
		}
		/* Others may have had the last of it, which would be found afterwards. */
	} while (cpu_time_ns(0) < until_ns);
	return 0;
}

/* ---- work: done once by each thread, and once again to compare -------------- */

struct product {
	u32 work;
	u64 units;
	u64 value;
	struct product *next;
};

static struct product *products; /* of all threads; a list that only grows */

static int work(struct sl_player *p, u32 kind, u64 units)
{
	struct product *product;
	u64 value = sl_work(kind, units);

	(void)p;
	ut_disable();
	product = malloc(sizeof(*product));
	ut_enable();
	if (!product)
		return -ENOMEM;
	*product = (struct product){ kind, units, value, NULL };
	product->next = __atomic_load_n(&products, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&products, &product->next, product, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return 0;
}

static int by_kind(const void *a, const void *b)
{
	const struct product *x = *(struct product *const *)a;
	const struct product *y = *(struct product *const *)b;

	if (x->work != y->work)
		return x->work < y->work ? -1 : 1;
	return x->units < y->units ? -1 : x->units > y->units;
}

/* Every product is what a kernel thread, undisturbed, computes. */
void verbs_check_products(void)
{
	struct product **all;
	u64 value = 0;
	u32 nr = 0;

	for (struct product *p = products; p; p = p->next)
		nr++;
	all = calloc(nr + 1, sizeof(*all));
	if (!all)
		return;
	run.result->nr_products = nr;
	for (struct product *p = products; p; p = p->next)
		all[--nr] = p;
	nr = run.result->nr_products;
	qsort(all, nr, sizeof(*all), by_kind);
	for (u32 i = 0; i < nr; i++) {
		if (!i || by_kind(&all[i - 1], &all[i]))
			value = sl_work(all[i]->work, all[i]->units);
		if (all[i]->value != value)
			run_fail("host", 0,
				 "work %u of %llu units came to %llu, not %llu: a thread was disturbed",
				 all[i]->work, all[i]->units, all[i]->value, value);
	}
	free(all);
}

/* ---- time, turns -------------------------------------------------------------- */

static int sleep_until(struct sl_player *p, u64 at_ns)
{
	u64 now = ut_now_ns();

	(void)p;
	return at_ns > now ? ut_sleep_ns(at_ns - now) : 0;
}

static int yield(struct sl_player *p)
{
	(void)p;
	return ut_yield();
}

/* ---- files --------------------------------------------------------------------- */

#define DATA_BYTES (64ULL << 20)
#define CHUNK_BYTES_MAX (1U << 20)

struct transfer {
	u64 bytes;
	u32 chunk_bytes;
	bool is_write, is_sync;
};

/* On a helper's kernel thread: the whole verb is one request. */
static int transfer(void *arg)
{
	const struct transfer *t = arg;
	u64 left = t->bytes;
	u64 at = 0;
	char *buffer = malloc(CHUNK_BYTES_MAX);
	int err = buffer ? 0 : -ENOMEM;

	while (left && !err) {
		u64 bytes = t->chunk_bytes && t->chunk_bytes < left ? t->chunk_bytes : left;
		ssize_t n;

		if (bytes > CHUNK_BYTES_MAX)
			bytes = CHUNK_BYTES_MAX;
		memset(buffer, (int)at, t->is_write ? bytes : 0);
		n = t->is_write ? pwrite(run.data_fd, buffer, bytes, (off_t)at) :
				  pread(run.data_fd, buffer, bytes, (off_t)at);
		if (n < 0 && errno != EINTR)
			err = -errno;
		if (t->is_write && t->is_sync && fdatasync(run.data_fd))
			err = -errno;
		left -= bytes;
		at = (at + bytes) % DATA_BYTES;
	}
	free(buffer);
	return err;
}

static int use_file(u64 bytes, u32 chunk_bytes, u8 flags, bool is_write)
{
	struct transfer t = { bytes, chunk_bytes, is_write, flags & (SL_OP_SYNC | SL_OP_DIRECT) };

	return ut_outside(transfer, &t);
}

static int read_file(struct sl_player *p, u64 bytes, u32 chunk_bytes, u8 flags)
{
	(void)p;
	return use_file(bytes, chunk_bytes, flags, false);
}

static int write_file(struct sl_player *p, u64 bytes, u32 chunk_bytes, u8 flags)
{
	(void)p;
	return use_file(bytes, chunk_bytes, flags, true);
}

/* ---- objects: what they do is player/objects.c's ------------------------------- */

/* An operation of the calling task, on its stack. */
struct operation {
	struct sl_waiter waiter; /* first: sl_wait_wake() finds the rest by it */
	bool is_done;		 /* atomic */
	sl_lock_t *lock;
};

static struct ut_thread *thread_of(const struct sl_waiter *w)
{
	return ((const struct play *)w->task)->thread;
}

void sl_wait_block(struct sl_waiter *w, const char *why)
{
	ut_prepare_block(thread_of(w), UT_WAIT_OBJECT, why);
}

void sl_wait_change(struct sl_waiter *w, const char *why)
{
	WRITE_ONCE(thread_of(w)->wait_object, why);
}

void sl_wait_wake(struct sl_waiter *w, bool is_sync, const struct sl_waiter *by)
{
	struct ut_thread *t = thread_of(w);

	(void)by;
	/* From now on @w may be gone. */
	smp_store_release(&((struct operation *)w)->is_done, true);
	ut_wake(t, is_sync ? SCX_WAKE_SYNC : 0);
}

/* Preemption is disabled and the object's lock held, until finish(). */
static struct sl_object *begin(struct operation *op, struct sl_player *p, u32 object)
{
	struct object *o = &run.objects[object];

	*op = (struct operation){ .waiter.task = play_of(p), .lock = o->lock };
	ut_disable();
	sl_lock(op->lock);
	return &o->object;
}

/*
 * Block until @op is complete. One that completed meanwhile asks the core once all
 * the same, as in the simulator: the slice may be used up.
 */
static void wait_done(struct operation *op)
{
	struct ut_thread *self = thread_of(&op->waiter);

	ut_block(self);
	/* Perhaps it was woken late for what it has had: a child that ended. */
	while (!smp_load_acquire(&op->is_done)) {
		sl_lock(op->lock);
		ut_prepare_block(self, UT_WAIT_OBJECT, self->wait_object);
		sl_unlock(op->lock);
		if (!smp_load_acquire(&op->is_done))
			ut_block(self);
	}
	ut_end_wait(self);
}

/* Return: 0, or @err if the object's state does not allow the operation. */
static int finish(struct operation *op, enum sl_object_result result, int err)
{
	sl_unlock(op->lock);
	if (result == SL_OBJECT_WAITS)
		wait_done(op);
	ut_enable();
	return result == SL_OBJECT_ERROR ? err : 0;
}

static int lock(struct sl_player *p, u32 object)
{
	struct operation op;
	struct sl_object *o = begin(&op, p, object);

	return finish(&op, sl_object_lock(o, &op.waiter), -EDEADLK);
}

static int unlock(struct sl_player *p, u32 object)
{
	struct operation op;
	struct sl_object *o = begin(&op, p, object);

	return finish(&op, sl_object_unlock(o, &op.waiter), -EPERM);
}

static int barrier(struct sl_player *p, u32 object)
{
	struct operation op;
	struct sl_object *o = begin(&op, p, object);

	return finish(&op, sl_object_arrive(o, &op.waiter), 0);
}

static int await(struct sl_player *p, u32 object, u32 with)
{
	struct operation op;
	struct sl_object *o = begin(&op, p, object);
	struct sl_object *lock = with == SL_PROGRAM_NONE ? NULL : &run.objects[with].object;

	return finish(&op, sl_object_await(o, &op.waiter, lock), -EPERM);
}

static int signal_cond(struct sl_player *p, u32 object, bool all)
{
	struct operation op;
	struct sl_object *o = begin(&op, p, object);

	sl_object_signal(o, &op.waiter, all);
	return finish(&op, SL_OBJECT_DONE, 0);
}

static int send_bytes(struct sl_player *p, u32 object, u64 bytes)
{
	struct operation op;
	struct sl_object *o = begin(&op, p, object);

	return finish(&op, sl_object_send(o, &op.waiter, bytes), 0);
}

static int recv_bytes(struct sl_player *p, u32 object, u64 bytes)
{
	struct operation op;
	struct sl_object *o = begin(&op, p, object);

	return finish(&op, sl_object_recv(o, &op.waiter, bytes), 0);
}

/* ---- children, attributes ------------------------------------------------------------ */

static int spawn(struct sl_player *p, u32 task)
{
	int err;

	ut_disable();
	err = play_start(task, play_of(p));
	ut_enable();
	return err;
}

static int wait_children(struct sl_player *p, u64 children)
{
	int err = 0;

	while (children-- && !err)
		err = ut_sem_wait(&play_of(p)->ended);
	return err;
}

static int set(struct sl_player *p, u32 key, u64 value)
{
	int err;

	ut_disable();
	/* The record of it bears the time of the clock's last reading. */
	sl_host_now_ns();
	err = sl_task_set_attr(&play_of(p)->thread->core, key, value);
	ut_enable();
	return err;
}

static int join(struct sl_player *p, u32 object)
{
	int err;

	(void)p;
	ut_disable();
	err = ut_cgroup_move_now(ut_self(), run.groups[object]);
	ut_enable();
	return err;
}

const struct sl_player_ops ut_verbs = {
	.now_ns = now_ns,
	.run = use_cpu,
	.work = work,
	.sleep_until = sleep_until,
	.read = read_file,
	.write = write_file,
	.yield = yield,
	.lock = lock,
	.unlock = unlock,
	.send = send_bytes,
	.recv = recv_bytes,
	.barrier = barrier,
	.await = await,
	.signal = signal_cond,
	.join = join,
	.spawn = spawn,
	.wait = wait_children,
	.set = set,
};

static bool has_files(void)
{
	const struct sl_program_op *ops = sl_program_ops(run.program);
	u32 nr = sl_program_header(run.program)->nr_ops;

	for (u32 i = 0; i < nr; i++) {
		if (ops[i].verb == SL_VERB_READ || ops[i].verb == SL_VERB_WRITE)
			return true;
	}
	return false;
}

/* Objects, and a file without a name. Return: 0 or -errno. */
int verbs_open(void)
{
	const struct sl_program_object *objects = sl_program_objects(run.program);
	u32 nr = sl_program_header(run.program)->nr_objects;

	run.data_fd = -1;
	run.objects = calloc(nr + 1, sizeof(*run.objects));
	if (!run.objects)
		return -ENOMEM;
	for (u32 i = 0; i < nr; i++) {
		struct object *o = &run.objects[i];

		o->object.size = objects[i].param;
		o->lock = objects[i].kind == SL_OBJECT_LOCK ||
					  objects[i].kind == SL_OBJECT_CONDITION ?
				  &run.lock :
				  &o->own_lock;
	}
	if (!has_files())
		return 0;
	run.data_fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (run.data_fd < 0)
		run.data_fd = memfd_create("schedlab", MFD_CLOEXEC);
	if (run.data_fd < 0 || ftruncate(run.data_fd, (off_t)DATA_BYTES))
		return -errno;
	return 0;
}

void verbs_close(void)
{
	if (run.data_fd >= 0)
		close(run.data_fd);
}
