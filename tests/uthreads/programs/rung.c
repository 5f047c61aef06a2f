/* SPDX-License-Identifier: MIT */
/*
 * rung.c - preemption where an emulator has no timer for one kernel thread.
 *
 * A kernel thread outside sends the library's signal to all others, as their timers
 * would, some hundred times a second. Threads that never give way take turns, and
 * what they hold in registers, of all kinds, is theirs.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR 3
#define TURNS 20

static volatile bool must_end;
static int running = -1;
static long nr_turns[NR];

static void *ring(void *arg)
{
	pid_t self = (pid_t)syscall(SYS_gettid);

	while (!must_end) {
		DIR *folder = opendir("/proc/self/task");
		struct dirent *entry;

		CHECK(folder);
		while ((entry = readdir(folder))) {
			pid_t tid = atoi(entry->d_name);

			if (tid && tid != self)
				syscall(SYS_tgkill, getpid(), tid, SIGURG);
		}
		closedir(folder);
		usleep(2000);
	}
	return arg;
}

static bool all_had_turns(void)
{
	for (int i = 0; i < NR; i++) {
		if (__atomic_load_n(&nr_turns[i], __ATOMIC_SEQ_CST) < TURNS)
			return false;
	}
	return true;
}

/* The sums are the same however often it was stopped. */
static void *compute(void *arg)
{
	int me = (int)(intptr_t)arg;

	while (!all_had_turns()) {
		double sum = 0, product = 1;
		uint32_t hash = 1;

		for (int i = 1; i <= 2000; i++) {
			sum += i * 0.5;
			product *= 1.0 + 1.0 / i;
			hash = hash * 31 + (uint32_t)i;
			/* Somebody else ran in between. */
			if (__atomic_exchange_n(&running, me, __ATOMIC_SEQ_CST) != me)
				__atomic_add_fetch(&nr_turns[me], 1, __ATOMIC_SEQ_CST);
		}
		CHECK(sum == 1000500.0);
		CHECK(product > 2000.999 && product < 2001.001);
		CHECK_IS(hash, 4261099241L);
	}
	return arg;
}

int main(int argc, char **argv)
{
	const char *sets[] = { "slice_ns=1000000", NULL };
	struct ut_config config = check_config(argc, argv);
	struct ut_stats stats;
	long nr_stopped = 0;
	pthread_t ringer;
	ut_id ids[NR];

	config.sets = sets;
	check_init(&config);
	CHECK_IS(pthread_create(&ringer, NULL, ring, NULL), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, compute, (void *)(intptr_t)i), 0);
	for (int i = 0; i < NR; i++) {
		CHECK_IS(ut_join_stats(ids[i], NULL, &stats), 0);
		nr_stopped += (long)stats.involuntary_switches;
	}
	must_end = true;
	CHECK_IS(pthread_join(ringer, NULL), 0);
	CHECK_IS(ut_exit(), 0);
	CHECK(nr_stopped > 0);
	puts("good");
	return 0;
}
