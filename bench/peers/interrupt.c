/* SPDX-License-Identifier: MIT */
/*
 * interrupt.c - what a timer's signal takes by itself: no preemption by signals is shorter.
 *
 *	interrupt PERIOD_NS COUNT: prints {"p50_ns": ..., "p99_ns": ...}
 *
 * A program notes the time, over and over; a timer stops it each PERIOD_NS for a handler
 * that does nothing. The gap is from the last note before to the first one after.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define GAPS_MAX 100000

static volatile long nr_interrupts;

static uint64_t clock_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static void on_signal(int signal)
{
	(void)signal;
	nr_interrupts++;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	static uint64_t gaps_ns[GAPS_MAX];
	long period_ns = argc > 2 ? atol(argv[1]) : 0, count = argc > 2 ? atol(argv[2]) : 0;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG };
	struct itimerspec spec = { .it_interval = { 0, period_ns }, .it_value = { 0, period_ns } };
	uint64_t last_ns;
	timer_t timer;

	if (period_ns < 1 || period_ns > 999999999 || count < 1 || count > GAPS_MAX)
		return 2;
	signal(SIGURG, on_signal);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &spec, NULL))
		return 1;
	last_ns = clock_ns();
	for (long seen = 0; seen < count;) {
		uint64_t now_ns = clock_ns();

		if (nr_interrupts != seen) {
			/* It may have come since the clock was read. */
			now_ns = clock_ns();
			gaps_ns[seen++] = now_ns - last_ns;
			if (nr_interrupts > seen)
				nr_interrupts = seen;
		}
		last_ns = now_ns;
	}
	qsort(gaps_ns, (size_t)count, sizeof(gaps_ns[0]), by_size);
	printf("{\"p50_ns\": %llu, \"p99_ns\": %llu}\n", (unsigned long long)gaps_ns[count / 2],
	       (unsigned long long)gaps_ns[count * 99 / 100]);
	return 0;
}
