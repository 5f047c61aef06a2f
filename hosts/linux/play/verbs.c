/* SPDX-License-Identifier: MIT */
/*
 * verbs.c - what each verb of a workload program is on Linux.
 *
 * Called by the tasks of a run, each for itself. Locks and pipes are in sync.c,
 * files in files.c, children in task.c.
 *
 * Read next: player/player.c, who calls these.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <scx/types.h>
#include <scx/attrs.h>

#include "play.h"

#define NS_PER_S 1000000000ULL
#define NS_PER_MS 1000000ULL
#define CALIBRATE_NS (5 * NS_PER_MS)
#define CALIBRATIONS 5
/* Shorter than what a look at the clock costs on a virtual machine. */
#define NOTHING_NS 500

static u64 cpu_time_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (u64)t.tv_sec * NS_PER_S + (u64)t.tv_nsec;
}

/* The best of a few tries: disturbances only ever make a loop slower. */
void verbs_calibrate(void)
{
	u64 rounds = 100000;

	for (int i = 0; i < CALIBRATIONS; i++) {
		u64 from_ns = cpu_time_ns();
		u64 used_ns;

		sl_work(SL_WORK_SPIN, rounds);
		used_ns = cpu_time_ns() - from_ns;
		if (used_ns && rounds * NS_PER_MS / used_ns > run.rounds_per_ms)
			run.rounds_per_ms = rounds * NS_PER_MS / used_ns;
		rounds = run.rounds_per_ms * CALIBRATE_NS / NS_PER_MS;
	}
	if (!run.rounds_per_ms)
		run.rounds_per_ms = 1;
}

/* Time 0 is the start of the run, as it is in the simulator. */
static u64 now_ns(struct sl_player *p)
{
	(void)p;
	return monotonic_ns() - run.shared->start_ns;
}

/*
 * A loop of known length, then a look at the task's own clock: three quarters of
 * what is left each time, so that a CPU that has become slower is not overrun,
 * and a second costs about ten looks. A look is a system call, and would be
 * counted as system time.
 */
static int use_cpu(struct sl_player *p, u64 ns)
{
	u64 until_ns = cpu_time_ns() + ns;
	u64 left_ns = ns;

	(void)p;
	for (;;) {
		u64 now = cpu_time_ns();

		if (now + NOTHING_NS >= until_ns)
			return 0;
		left_ns = until_ns - now;
		if (left_ns > 4 * NOTHING_NS)
			left_ns -= left_ns / 4;
		/* A step is at most a second, so this does not overflow. */
		if (left_ns > NS_PER_S)
			left_ns = NS_PER_S;
		sl_work(SL_WORK_SPIN, left_ns * run.rounds_per_ms / NS_PER_MS);
	}
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
	u64 on_clock_ns = run.shared->start_ns + at_ns;
	struct timespec at = { .tv_sec = (time_t)(on_clock_ns / NS_PER_S),
			       .tv_nsec = (long)(on_clock_ns % NS_PER_S) };

	(void)p;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
	return 0;
}

static int yield(struct sl_player *p)
{
	(void)p;
	return sched_yield() ? -errno : 0;
}

static int spawn(struct sl_player *p, u32 task)
{
	(void)p;
	return task_spawn(task);
}

static int wait_children(struct sl_player *p, u64 children)
{
	return task_wait(p->task, children, p->nr_awaited);
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

int nice_of_weight(u64 weight)
{
	s64 best = INT64_MAX;
	int nice = 0;

	for (int i = 0; i < 40; i++) {
		s64 off = (s64)weight * 1024 - (s64)weight_of_nice[i] * 100;

		off = off < 0 ? -off : off;
		if (off < best) {
			best = off;
			nice = i - 20;
		}
	}
	return nice;
}

/* Of a task's attributes Linux's own classes know the weight alone. */
static int set(struct sl_player *p, u32 key, u64 value)
{
	(void)p;
	if (key != TASK_ATTR_WEIGHT || !run.options.has_weights)
		return 0;
	return setpriority(PRIO_PROCESS, 0, nice_of_weight(value)) ? -errno : 0;
}

const struct sl_player_ops verbs = {
	.now_ns = now_ns,
	.run = use_cpu,
	.work = work,
	.sleep_until = sleep_until,
	.read = files_read,
	.write = files_write,
	.yield = yield,
	.lock = sync_lock,
	.unlock = sync_unlock,
	.send = sync_send,
	.recv = sync_recv,
	.barrier = sync_barrier,
	.await = sync_await,
	.signal = sync_signal,
	.spawn = spawn,
	.wait = wait_children,
	.set = set,
};
