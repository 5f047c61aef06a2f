/* SPDX-License-Identifier: MIT */
/*
 * library.c - threads that compute in a library make way, also in one that was opened
 * meanwhile; not while they hold a lock of its own, which others would wait for.
 *
 * Third argument: the library. Fourth: compute, or count.
 */
#include "check.h"

#include <dlfcn.h>

#define NR 4
#define NR_ROUNDS 20
#define NR_SLEEPS 20

static void (*compute)(const int *must_end);
static int (*count)(long rounds);
static int must_end;

static void *run_compute(void *arg)
{
	compute(&must_end);
	return arg;
}

static void *run_count(void *arg)
{
	CHECK(count(NR_ROUNDS));
	return arg;
}

int main(int argc, char **argv)
{
	const char *one_tick[] = { "slice_ns=1", NULL };
	struct ut_config config = check_config(argc, argv);
	int counts = argc > 4 && !strcmp(argv[4], "count");
	ut_id ids[NR];
	void *library;

	config.tick_ns = 1000000;
	config.sets = one_tick;
	check_init(&config);
	CHECK_IS(ut_sleep_ns(1000000), 0);
	library = dlopen(argc > 3 ? argv[3] : "", RTLD_NOW);
	CHECK(library);
	*(void **)&compute = dlsym(library, "plugin_compute");
	*(void **)&count = dlsym(library, "plugin_count");
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, counts ? run_count : run_compute, NULL), 0);
	/* Each sleep ends although all CPUs compute. */
	for (int i = 0; i < NR_SLEEPS && !counts; i++)
		CHECK_IS(ut_sleep_ns(1000000), 0);
	must_end = 1;
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
