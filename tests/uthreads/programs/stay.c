/* SPDX-License-Identifier: MIT */
/*
 * stay.c - a thread with an endless slice gives it up, and nobody else is there: it
 * goes on with a slice that ends (S12), and so makes way for who comes later.
 */
#include "check.h"

#include <stdatomic.h>

static atomic_int has_run;

static void *run(void *arg)
{
	atomic_store(&has_run, 1);
	return arg;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	ut_id id;

	check_init(&config);
	CHECK_IS(ut_yield(), 0);
	CHECK_IS(ut_create(&id, NULL, run, NULL), 0);
	/* Without an end, if its turn has none. */
	while (!atomic_load(&has_run))
		;
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
