/* SPDX-License-Identifier: MIT */
/*
 * charged.c - a thread is charged by its own calls, each between a tick's time and its
 * signal, and makes way at the tick for all that. Third argument: ask, or change.
 */
#include "check.h"

#include <stdatomic.h>

#define RUN_NS 300000000ULL
#define TICK_NS 1000000
#define SIGNAL_NS 5000	/* a signal takes longer */

static atomic_int must_end;
static int changes;

static void *spin(void *arg)
{
	while (!atomic_load_explicit(&must_end, memory_order_relaxed))
		;
	return arg;
}

/* Return: how often it made way. */
static void *be_charged(void *arg)
{
	struct ut_attr attr = UT_ATTR_INIT;
	struct ut_stats stats;

	attr.given = UT_GIVES_TICKETS;
	do {
		while (ut_now_ns() % TICK_NS > SIGNAL_NS)
			;
		attr.tickets = attr.tickets % 100 + 1;
		if (changes)
			CHECK_IS(ut_setattr(ut_self(), &attr), 0);
		CHECK_IS(ut_stats(ut_self(), &stats), 0);
	} while (stats.cpu_time_ns < RUN_NS);
	*(uint64_t *)arg = stats.involuntary_switches;
	return NULL;
}

int main(int argc, char **argv)
{
	const char *one_tick[] = { "slice_ns=1", NULL };
	struct ut_config config = check_config(argc, argv);
	uint64_t nr_switches = 0;
	ut_id spins, is_charged;

	changes = argc > 3 && !strcmp(argv[3], "change");
	config.sets = one_tick;
	config.tick_ns = TICK_NS;
	check_init(&config);
	CHECK_IS(ut_create(&spins, NULL, spin, NULL), 0);
	CHECK_IS(ut_create(&is_charged, NULL, be_charged, &nr_switches), 0);
	CHECK_IS(ut_join(is_charged, NULL), 0);
	must_end = 1;
	CHECK_IS(ut_join(spins, NULL), 0);
	CHECK_IS(ut_exit(), 0);
	printf("%llu\n", (unsigned long long)nr_switches);
	return 0;
}
