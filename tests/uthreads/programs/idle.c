/* SPDX-License-Identifier: MIT */
/*
 * idle.c - while all threads sleep, the machine takes no CPU time.
 *
 *	idle POLICY CPUS MILLISECONDS
 *
 * Prints how many microseconds of it were used in so many of sleep.
 */
#include "check.h"

#include <errno.h>
#include <time.h>

#define NR 500
#define BEGIN_NS 20000000ULL	/* until all sleep */

static long used_us(void)
{
	struct timespec at;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return at.tv_sec * 1000000 + at.tv_nsec / 1000;
}

static void *sleep_long(void *arg)
{
	CHECK_IS(ut_sleep_ns(3600000000000ULL), -ECANCELED);
	return arg;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	ut_id ids[NR];
	long before_us;

	CHECK(argc > 3);
	check_init(&config);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, sleep_long, NULL), 0);
	CHECK_IS(ut_sleep_ns(BEGIN_NS), 0);
	before_us = used_us();
	CHECK_IS(ut_sleep_ns(strtoull(argv[3], NULL, 10) * 1000000), 0);
	printf("%ld\n", used_us() - before_us);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_cancel(ids[i]), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(ut_exit(), 0);
	return 0;
}
