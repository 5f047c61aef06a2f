/* SPDX-License-Identifier: MIT */
/*
 * shares.c - threads that compute without end, and what each of them was given.
 *
 *	shares POLICY CPUS CPU_MS THREADS CAP_PERCENT [NAME=VALUE...]
 *
 * THREADS on each CPU have 25, 50, 75 or 100 credits; those with 100 may have
 * CAP_PERCENT of a CPU each (0: no cap). Ends when all together have had CPU_MS of CPU
 * time for each CPU, however long that takes, and prints one line per thread: its
 * credits, its CPU time; and the time that it took all in all.
 */
#include "check.h"

#include <stdbool.h>

#define NR_MAX 64

static volatile bool must_end;

static void *compute(void *arg)
{
	while (!must_end)
		;
	return arg;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	uint64_t wanted_ns, begin_ns, sum_ns = 0, times_ns[NR_MAX];
	ut_id ids[NR_MAX];
	int nr;

	CHECK(argc > 5);
	wanted_ns = strtoull(argv[3], NULL, 0) * 1000000 * config.nr_cpus;
	nr = atoi(argv[4]) * (int)config.nr_cpus;
	CHECK(nr <= NR_MAX);
	config.sets = (const char *const *)&argv[6];
	check_init(&config);
	begin_ns = ut_now_ns();
	for (int i = 0; i < nr; i++) {
		struct ut_attr attr = UT_ATTR_INIT;

		attr.given = UT_GIVES_CREDITS;
		attr.credits = 25 * (1 + i % 4);
		attr.cap_percent = (uint32_t)atoi(argv[5]);
		if (attr.credits == 100 && attr.cap_percent)
			attr.given |= UT_GIVES_CAP;
		CHECK_IS(ut_create(&ids[i], &attr, compute, NULL), 0);
	}
	while (sum_ns < wanted_ns) {
		CHECK_IS(ut_sleep_ns(20000000), 0);
		sum_ns = 0;
		for (int i = 0; i < nr; i++) {
			times_ns[i] = ut_cpu_time_ns(ids[i]);
			sum_ns += times_ns[i];
		}
	}
	printf("%llu ns\n", (unsigned long long)(ut_now_ns() - begin_ns));
	must_end = true;
	for (int i = 0; i < nr; i++) {
		printf("%d credits %llu ns\n", 25 * (1 + i % 4),
		       (unsigned long long)times_ns[i]);
		CHECK_IS(ut_join(ids[i], NULL), 0);
	}
	CHECK_IS(ut_exit(), 0);
	return 0;
}
