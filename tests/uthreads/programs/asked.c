/* SPDX-License-Identifier: MIT */
/* asked.c - threads that yield, sleep and migrate, and one that reads their statistics meanwhile. */
#include "check.h"

#include <stdatomic.h>

#define NR 3
#define TURNS 2000

static atomic_int nr_left = NR;

static void *switch_often(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		if (i % 8)
			CHECK_IS(ut_yield(), 0);
		else
			CHECK_IS(ut_sleep_ns(1000), 0);
	}
	nr_left--;
	return arg;
}

/* A statistic only grows. */
static void ask(ut_id id, struct ut_stats *last)
{
	struct ut_stats stats;

	CHECK_IS(ut_stats(id, &stats), 0);
	CHECK(stats.cpu_time_ns >= last->cpu_time_ns);
	CHECK(stats.wait_ns >= last->wait_ns);
	CHECK(stats.wait_ns_max >= last->wait_ns_max);
	CHECK(stats.voluntary_switches >= last->voluntary_switches);
	CHECK(stats.migrations >= last->migrations);
	*last = stats;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	struct ut_stats last[NR] = { 0 };
	ut_id ids[NR];

	check_init(&config);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, switch_often, NULL), 0);
	while (nr_left) {
		for (int i = 0; i < NR; i++)
			ask(ids[i], &last[i]);
		ut_yield();
	}
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(ut_exit(), 0);
	return 0;
}
