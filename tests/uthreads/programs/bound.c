/* SPDX-License-Identifier: MIT */
/*
 * bound.c - who holds the address of a thread-local variable while it is preempted
 * goes on on the same kernel thread; who does not may go on on another one.
 */
#include "check.h"

#define NR 6

static __thread int variable;
static int must_end;
static long moves;

/* The address as it is now; a compiler must not think that it stays. */
__attribute__((noinline)) static int *address(void)
{
	__asm__ volatile("");
	return &variable;
}

static void *hold(void *arg)
{
	int *volatile held = address();

	while (!__atomic_load_n(&must_end, __ATOMIC_RELAXED))
		CHECK(held == address());
	return arg;
}

/* It sleeps now and then, so that a CPU runs dry: some policies move a thread only then. */
static void *hold_nothing(void *arg)
{
	int last = ut_cpu();
	unsigned long n = 0;

	while (!__atomic_load_n(&must_end, __ATOMIC_RELAXED)) {
		if (ut_cpu() != last)
			__atomic_add_fetch(&moves, 1, __ATOMIC_RELAXED);
		last = ut_cpu();
		if (++n % 1000000 == 0)
			ut_sleep_ns(1000000 + n % 7 * 3000000);
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	int must_hold = argc > 3 && !strcmp(argv[3], "hold");
	ut_id ids[NR];

	check_init(&config);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, must_hold ? hold : hold_nothing, NULL), 0);
	/* Five turns for everybody, or until somebody moved. */
	for (int i = 0; i < 300 && (must_hold ? i < 15 : !moves); i++)
		CHECK_IS(ut_sleep_ns(20000000), 0);
	must_end = 1;
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK(must_hold || moves);
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
