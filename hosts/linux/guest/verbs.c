/* SPDX-License-Identifier: MIT */
/*
 * verbs.c - what each verb of a workload program is on Linux.
 *
 * Called by the processes of a run, each for itself. What tasks share lies in
 * one shared mapping: locks and barriers are futexes there, pipes are pipes.
 * For `read` and `write` there is device.c.
 *
 * Read next: play.c, which makes the processes.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

#define NS_PER_S 1000000000ULL
#define PIPE_CHUNK 65536

enum { LOCK_FREE, LOCK_HELD, LOCK_WANTED };

static u64 clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

u64 monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static struct timespec as_timespec(u64 ns)
{
	return (struct timespec){ .tv_sec = ns / NS_PER_S,
				  .tv_nsec = ns % NS_PER_S };
}

void futex_wait(u32 *word, u32 seen, u64 until_ns)
{
	struct timespec until = as_timespec(until_ns);

	/* The bitset form takes an absolute time of the monotonic clock. */
	syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen,
		until_ns == ~0ULL ? NULL : &until, NULL,
		FUTEX_BITSET_MATCH_ANY);
}

void futex_wake(u32 *word, int how_many)
{
	syscall(SYS_futex, word, FUTEX_WAKE, how_many, NULL, NULL, 0);
}

static struct shared *shared_of(struct sl_player *p)
{
	return p->host;
}

static struct shared_object *object_of(struct sl_player *p, u32 object)
{
	return &shared_of(p)->objects[object];
}

/* Time 0 is the start of the run, as it is in the simulator. */
static u64 now_ns(struct sl_player *p)
{
	return monotonic_ns() - shared_of(p)->start_ns;
}

/*
 * A run is CPU time, the calls between it and the next one included: what they took
 * is taken off, but never more than this part of a run. It stops early by about what
 * one takes, so that a burst as long as a tick is over, call and all, before it.
 */
#define CALL_IN_RUN_PART 128
#define CALL_NS 12000	/* of 12,000 instructions, switching and tracing included */

/* Own CPU time when the last run was over, and what was taken off it for a call. */
static u64 ended_ns, prepaid_ns;

void verbs_begin(void)
{
	ended_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	prepaid_ns = 0;
}

static u64 at_most(u64 ns, u64 limit_ns)
{
	return ns < limit_ns ? ns : limit_ns;
}

static int run(struct sl_player *p, u64 ns)
{
	u64 now_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	u64 part_ns = ns / CALL_IN_RUN_PART;
	u64 calls_ns = now_ns - ended_ns;
	u64 early_ns = at_most(CALL_NS, part_ns);
	u64 until_ns = now_ns + ns - early_ns;

	(void)p;
	if (calls_ns > prepaid_ns)
		until_ns -= at_most(calls_ns - prepaid_ns, part_ns);
	else
		until_ns += prepaid_ns - calls_ns;
	prepaid_ns = early_ns;
	do
		ended_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	while (ended_ns < until_ns);
	return 0;
}

static int work(struct sl_player *p, u32 kind, u64 units)
{
	volatile u64 result;

	(void)p;
	result = sl_work(kind, units);
	(void)result;
	return 0;
}

static int sleep_until(struct sl_player *p, u64 at_ns)
{
	struct timespec at = as_timespec(shared_of(p)->start_ns + at_ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
	return 0;
}

static int yield(struct sl_player *p)
{
	(void)p;
	return sched_yield() ? -errno : 0;
}

/* The mutex of Drepper's "Futexes Are Tricky" (2005): 2 says that one waits. */
void futex_lock(u32 *word)
{
	u32 seen = LOCK_FREE;

	if (__atomic_compare_exchange_n(word, &seen, LOCK_HELD, false,
					__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(word, LOCK_WANTED, __ATOMIC_ACQUIRE))
		futex_wait(word, LOCK_WANTED, ~0ULL);
}

void futex_unlock(u32 *word)
{
	if (__atomic_exchange_n(word, LOCK_FREE, __ATOMIC_RELEASE) == LOCK_WANTED)
		futex_wake(word, 1);
}

static int lock(struct sl_player *p, u32 object)
{
	futex_lock(&object_of(p, object)->word);
	return 0;
}

static int unlock(struct sl_player *p, u32 object)
{
	futex_unlock(&object_of(p, object)->word);
	return 0;
}

static char pipe_bytes[PIPE_CHUNK];

static int send_bytes(struct sl_player *p, u32 object, u64 bytes)
{
	while (bytes) {
		u64 chunk = bytes < PIPE_CHUNK ? bytes : PIPE_CHUNK;
		ssize_t n = write(object_of(p, object)->pipe_fds[1], pipe_bytes,
				  chunk);

		if (n < 0)
			return -errno;
		bytes -= n;
	}
	return 0;
}

static int recv_bytes(struct sl_player *p, u32 object, u64 bytes)
{
	while (bytes) {
		u64 chunk = bytes < PIPE_CHUNK ? bytes : PIPE_CHUNK;
		ssize_t n = read(object_of(p, object)->pipe_fds[0], pipe_bytes,
				 chunk);

		if (n <= 0)
			return n ? -errno : -EPIPE;
		bytes -= n;
	}
	return 0;
}

static int barrier(struct sl_player *p, u32 object)
{
	struct shared_object *o = object_of(p, object);
	u64 parties = sl_program_objects(p->program)[object].param;
	u32 round = __atomic_load_n(&o->word, __ATOMIC_ACQUIRE);

	if (__atomic_add_fetch(&o->count, 1, __ATOMIC_ACQ_REL) == parties) {
		__atomic_store_n(&o->count, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&o->word, round + 1, __ATOMIC_RELEASE);
		futex_wake(&o->word, 1 << 30);
		return 0;
	}
	while (__atomic_load_n(&o->word, __ATOMIC_ACQUIRE) == round)
		futex_wait(&o->word, round, ~0ULL);
	return 0;
}

/*
 * A waiter draws a number, and is let go when more than that many have been. So
 * a signal wakes exactly who waited longest, and one that comes between letting
 * go of the lock and sleeping is not missed. Of 32 futex bits each waiter listens
 * to its own, so that few are woken in vain.
 */
static int await(struct sl_player *p, u32 object, u32 lock_object)
{
	struct shared_object *o = object_of(p, object);
	u32 number = __atomic_fetch_add(&o->count, 1, __ATOMIC_ACQ_REL);
	u32 seen;

	if (lock_object != SL_PROGRAM_NONE)
		unlock(p, lock_object);
	for (;;) {
		seen = __atomic_load_n(&o->word, __ATOMIC_ACQUIRE);
		if ((s32)(seen - number) > 0)
			break;
		syscall(SYS_futex, &o->word, FUTEX_WAIT_BITSET, seen, NULL, NULL,
			1U << number % 32);
	}
	return lock_object == SL_PROGRAM_NONE ? 0 : lock(p, lock_object);
}

static int signal_condition(struct sl_player *p, u32 object, bool all)
{
	struct shared_object *o = object_of(p, object);
	u32 gone = __atomic_load_n(&o->word, __ATOMIC_ACQUIRE);
	u32 come, next;

	do {
		come = __atomic_load_n(&o->count, __ATOMIC_ACQUIRE);
		if (gone == come)
			return 0;
		next = all ? come : gone + 1;
	} while (!__atomic_compare_exchange_n(&o->word, &gone, next, false,
					      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	syscall(SYS_futex, &o->word, FUTEX_WAKE_BITSET, 1 << 30, NULL, NULL,
		all ? FUTEX_BITSET_MATCH_ANY : 1U << gone % 32);
	return 0;
}

/* The process is there already; see play.c for why. */
static int spawn(struct sl_player *p, u32 task)
{
	u32 *started = &shared_of(p)->tasks[task].started;

	__atomic_store_n(started, 1, __ATOMIC_RELEASE);
	futex_wake(started, 1);
	return 0;
}

static int wait_children(struct sl_player *p, u64 children)
{
	u32 *ended = &shared_of(p)->tasks[p->task].children_ended;

	/* The player has counted @children into nr_awaited already. */
	(void)children;
	for (;;) {
		u32 seen = __atomic_load_n(ended, __ATOMIC_ACQUIRE);

		if (seen >= p->nr_awaited)
			return 0;
		futex_wait(ended, seen, ~0ULL);
	}
}

/*
 * Linux derives a task's weight from its nice value: by a factor of about 1.25
 * per step, 1024 at nice 0. These are its numbers.
 */
static const u32 weight_of_nice[40] = {
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
	1024, 820, 655, 526, 423, 335, 272, 215, 172, 137,
	110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
};

/* The nice value whose weight is nearest; sched_ext's are those over 10.24. */
static int nice_of_weight(u64 weight)
{
	s64 best = 1LL << 60;
	int nice = 0;
	int i;

	for (i = 0; i < 40; i++) {
		s64 off = (s64)weight * 1024 - (s64)weight_of_nice[i] * 100;

		if (off < 0)
			off = -off;
		if (off < best) {
			best = off;
			nice = i - 20;
		}
	}
	return nice;
}

/* struct task_attr of scx/task_attr.h, which only a policy can include. */
struct attrs {
	u64 deadline_ns;
	u64 burst_ns;
	s32 priority;
	u32 tickets;
	s32 credits;
	u32 cap_percent;
	u32 group;
	u32 given;
};

enum { PRIORITY, TICKETS, CREDITS, CAP, GROUP, DEADLINE, BURST, WEIGHT };

int attrs_write(int attrs_fd, s32 pid, const struct sl_program_task *task)
{
	const struct attrs attrs = {
		.deadline_ns = task->deadline_ns,
		.burst_ns = task->burst_ns,
		.priority = task->priority,
		.tickets = task->tickets,
		.credits = task->credits,
		.cap_percent = task->cap_percent,
		.group = task->group,
		.given = task->attr_given,
	};

	if (setpriority(PRIO_PROCESS, pid, nice_of_weight(task->weight)))
		return -errno;
	if (attrs_fd < 0)
		return 0;
	return bpf_map_update_elem(attrs_fd, &pid, &attrs, BPF_ANY);
}

int attrs_change(int attrs_fd, s32 pid, u32 key, u64 value)
{
	struct attrs attrs = { 0 };

	if (key == WEIGHT)
		return setpriority(PRIO_PROCESS, pid, nice_of_weight(value)) ?
			-errno : 0;
	if (attrs_fd < 0)
		return 0;
	bpf_map_lookup_elem(attrs_fd, &pid, &attrs);
	switch (key) {
	case PRIORITY:
		attrs.priority = value;
		break;
	case TICKETS:
		attrs.tickets = value;
		break;
	case CREDITS:
		attrs.credits = value;
		break;
	case CAP:
		attrs.cap_percent = value;
		break;
	case GROUP:
		attrs.group = value;
		break;
	case DEADLINE:
		attrs.deadline_ns = value;
		break;
	case BURST:
		attrs.burst_ns = value;
		break;
	}
	attrs.given |= 1U << key;
	return bpf_map_update_elem(attrs_fd, &pid, &attrs, BPF_ANY);
}

static int set(struct sl_player *p, u32 key, u64 value)
{
	return attrs_change(shared_of(p)->attrs_fd, getpid(), key, value);
}

int verbs_open(const void *program, struct shared *shared)
{
	const struct sl_program_header *h = program;
	u32 i;

	for (i = 0; i < h->nr_objects; i++) {
		const struct sl_program_object *o = &sl_program_objects(program)[i];
		int *fds = shared->objects[i].pipe_fds;

		fds[0] = fds[1] = -1;
		if (o->kind != SL_OBJECT_PIPE)
			continue;
		if (pipe(fds) || fcntl(fds[1], F_SETPIPE_SZ, o->param) < 0)
			return -errno;
	}
	return 0;
}

void verbs_close(const void *program, struct shared *shared)
{
	const struct sl_program_header *h = program;
	u32 i;

	for (i = 0; i < h->nr_objects; i++) {
		if (shared->objects[i].pipe_fds[0] < 0)
			continue;
		close(shared->objects[i].pipe_fds[0]);
		close(shared->objects[i].pipe_fds[1]);
	}
}

const struct sl_player_ops verbs = {
	.now_ns = now_ns,
	.run = run,
	.work = work,
	.sleep_until = sleep_until,
	.read = device_transfer,
	.write = device_transfer,
	.yield = yield,
	.lock = lock,
	.unlock = unlock,
	.send = send_bytes,
	.recv = recv_bytes,
	.barrier = barrier,
	.await = await,
	.signal = signal_condition,
	.spawn = spawn,
	.wait = wait_children,
	.set = set,
};
