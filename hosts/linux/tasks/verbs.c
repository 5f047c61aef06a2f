/* SPDX-License-Identifier: MIT */
/*
 * verbs.c - clocks, fixed work, and what a weight is on Linux.
 *
 * Read next: ../play/verbs.c and ../guest/verbs.c, which differ in how they use up
 * CPU time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "tasks.h"

static u64 clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (u64)t.tv_sec * NS_PER_S + (u64)t.tv_nsec;
}

u64 monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

u64 cpu_time_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

int tasks_sleep(u64 until_monotonic_ns)
{
	struct timespec at = { .tv_sec = (time_t)(until_monotonic_ns / NS_PER_S),
			       .tv_nsec = (long)(until_monotonic_ns % NS_PER_S) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
	return 0;
}

int tasks_work(struct sl_player *p, u32 kind, u64 units)
{
	volatile u64 result;

	(void)p;
	result = sl_work(kind, units);
	(void)result;
	return 0;
}

int tasks_yield(struct sl_player *p)
{
	(void)p;
	return sched_yield() ? -errno : 0;
}

/*
 * Linux derives a task's weight from its nice value: by a factor of about 1.25
 * per step, 1024 at nice 0. These are its numbers.
 */
static const u32 weight_of_nice[40] = {
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548,  7620,  6100,  4904,  3906,  3121,  2501,	 1991,	1586,  1277,
	1024,  820,   655,   526,   423,   335,	  272,	 215,	172,   137,
	110,   87,    70,    56,    45,	   36,	  29,	 23,	18,    15,
};

int nice_of_weight(u64 weight)
{
	s64 best = 1LL << 60;
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
