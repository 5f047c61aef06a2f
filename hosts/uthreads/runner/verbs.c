/* SPDX-License-Identifier: MIT */
/*
 * verbs.c - what each verb of a workload program is on user threads.
 *
 * Called by the threads of a run, each for itself. The thread that completes
 * another's wait hands over, as docs/semantics.md says of the simulator: bytes
 * go to the reader that waited longest.
 *
 * Read next: player/player.c, which calls these.
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

static struct object *object_of(u32 object)
{
	return &run.objects[object];
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

static struct product *products;	/* of all threads; a list that only grows */

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
	while (!__atomic_compare_exchange_n(&products, &product->next, product,
					    false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
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
		u64 bytes = t->chunk_bytes && t->chunk_bytes < left ?
			    t->chunk_bytes : left;
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

static int read_file(struct sl_player *p, u64 bytes, u32 chunk_bytes, u8 flags)
{
	struct transfer t = { bytes, chunk_bytes, false,
			      flags & (SL_OP_SYNC | SL_OP_DIRECT) };

	(void)p;
	return ut_outside(transfer, &t);
}

static int write_file(struct sl_player *p, u64 bytes, u32 chunk_bytes, u8 flags)
{
	struct transfer t = { bytes, chunk_bytes, true,
			      flags & (SL_OP_SYNC | SL_OP_DIRECT) };

	(void)p;
	return ut_outside(transfer, &t);
}

/* ---- locks, conditions, barriers ------------------------------------------------ */

static int lock(struct sl_player *p, u32 object)
{
	(void)p;
	return ut_mutex_lock(&object_of(object)->mutex);
}

static int unlock(struct sl_player *p, u32 object)
{
	(void)p;
	return ut_mutex_unlock(&object_of(object)->mutex);
}

static int barrier(struct sl_player *p, u32 object)
{
	int which = ut_barrier_wait(&object_of(object)->barrier);

	(void)p;
	return which < 0 ? which : 0;
}

/* Without a lock, one that no other task uses. */
static int await(struct sl_player *p, u32 object, u32 with)
{
	ut_mutex own = UT_MUTEX_INIT;
	int err;

	(void)p;
	if (with != SL_PROGRAM_NONE)
		return ut_cond_wait(&object_of(object)->cond,
				    &object_of(with)->mutex);
	ut_mutex_lock(&own);
	err = ut_cond_wait(&object_of(object)->cond, &own);
	ut_mutex_unlock(&own);
	return err;
}

static int signal_cond(struct sl_player *p, u32 object, bool all)
{
	(void)p;
	return all ? ut_cond_broadcast(&object_of(object)->cond) :
		     ut_cond_signal(&object_of(object)->cond);
}

/* ---- pipes ------------------------------------------------------------------------ */

/* What a thread that waits is about: bytes to send or receive, in `message`. */
static u64 *need_of(struct ut_thread *t)
{
	return t->message;
}

/*
 * Bytes flow as long as that shortens the wait of a task. Context: lock held; a
 * task that is served completely is woken.
 */
static void flow(struct object *o)
{
	bool has_moved = true;

	while (has_moved) {
		struct ut_thread *t = o->receivers.first;
		u64 bytes;

		has_moved = false;
		if (t && o->level_bytes) {
			bytes = *need_of(t) < o->level_bytes ? *need_of(t) :
							       o->level_bytes;
			o->level_bytes -= bytes;
			*need_of(t) -= bytes;
			has_moved = true;
			if (!*need_of(t))
				ut_wake_taken(ut_queue_take(&o->receivers));
		}
		t = o->senders.first;
		bytes = o->capacity_bytes - o->level_bytes;
		if (t && bytes) {
			bytes = *need_of(t) < bytes ? *need_of(t) : bytes;
			o->level_bytes += bytes;
			*need_of(t) -= bytes;
			has_moved = true;
			if (!*need_of(t))
				ut_wake_taken(ut_queue_take(&o->senders));
		}
	}
}

/* Earlier waiters go first, so what is left to do is done in the queue. */
static int use_pipe(struct object *o, u64 bytes, bool is_send)
{
	struct ut_queue *q = is_send ? &o->senders : &o->receivers;
	u64 now_bytes = 0;
	int err = 0;

	ut_disable();
	sl_lock(&o->lock);
	if (!q->first) {
		now_bytes = is_send ? o->capacity_bytes - o->level_bytes :
				      o->level_bytes;
		now_bytes = now_bytes < bytes ? now_bytes : bytes;
		o->level_bytes += is_send ? now_bytes : -now_bytes;
		bytes -= now_bytes;
	}
	flow(o);
	/* The others may have made room, or sent, meanwhile. */
	while (bytes && !q->first) {
		now_bytes = is_send ? o->capacity_bytes - o->level_bytes :
				      o->level_bytes;
		now_bytes = now_bytes < bytes ? now_bytes : bytes;
		if (!now_bytes)
			break;
		o->level_bytes += is_send ? now_bytes : -now_bytes;
		bytes -= now_bytes;
		flow(o);
	}
	if (bytes) {
		ut_this_cpu()->curr->message = &bytes;
		err = ut_wait_in(q, &o->lock, is_send ? UT_WAIT_SEND : UT_WAIT_RECV,
				 o, UT_NEVER);
	} else {
		sl_unlock(&o->lock);
	}
	ut_enable();
	return err;
}

static int send_bytes(struct sl_player *p, u32 object, u64 bytes)
{
	(void)p;
	return use_pipe(object_of(object), bytes, true);
}

static int recv_bytes(struct sl_player *p, u32 object, u64 bytes)
{
	(void)p;
	return use_pipe(object_of(object), bytes, false);
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
		run.objects[i].kind = objects[i].kind;
		run.objects[i].capacity_bytes = objects[i].param;
		run.objects[i].barrier.nr_parties_ = (u32)objects[i].param;
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
