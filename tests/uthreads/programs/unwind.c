/* SPDX-License-Identifier: MIT */
/* unwind.c - a stack that a debugger should see whole; test_debuggers.py drives it. */
#include "check.h"

#define APART __attribute__((noinline, noclone, noipa))

static ut_sem gate = UT_SEM_INIT(0);
static volatile int nr_here;

APART static int inner(int depth)
{
	nr_here++;
	CHECK_IS(ut_sem_wait(&gate), 0);
	return depth + 1;
}

APART static int middle(int depth)
{
	return inner(depth + 1) + 1;
}

APART static int outer(int depth)
{
	return middle(depth + 1) + 1;
}

static void *wait_deep(void *arg)
{
	CHECK_IS(outer(1), 6);
	return arg;
}

/* A breakpoint. */
APART void stop_here(void)
{
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	struct ut_attr attr = UT_ATTR_INIT;
	ut_id id, later = 0;

	config.flags = UT_NO_PREEMPTION;
	check_init(&config);
	attr.name = "waits";
	CHECK_IS(ut_create(&id, &attr, wait_deep, NULL), 0);
	while (!nr_here)
		ut_yield();
	ut_yield();
	attr.name = "new";
	if (getenv("UNWIND_NEW"))
		CHECK_IS(ut_create(&later, &attr, wait_deep, NULL), 0);
	stop_here();
	for (int i = 0; i < 2; i++)
		CHECK_IS(ut_sem_post(&gate), 0);
	CHECK_IS(ut_join(id, NULL), 0);
	if (later)
		CHECK_IS(ut_join(later, NULL), 0);
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
