/* SPDX-License-Identifier: MIT */
/* faults.c - what goes wrong is said: argument 3 names what. */
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static ut_mutex first, second;

static int deep(volatile int depth)
{
	volatile char used[1000];

	used[0] = (char)depth;
	return depth ? deep(depth - 1) + used[0] : 0;
}

static void *overflow(void *arg)
{
	return (void *)(intptr_t)deep(*(int *)arg);
}

static void *lock_both(void *arg)
{
	ut_mutex *own = arg;
	ut_mutex *other = own == &first ? &second : &first;

	ut_mutex_lock(own);
	ut_yield();
	ut_sleep_ns(1000000);
	ut_mutex_lock(other);
	return NULL;
}

static void start(const char *name, ut_fn fn, void *arg, ut_id *id)
{
	struct ut_attr attr = UT_ATTR_INIT;

	attr.name = name;
	CHECK_IS(ut_create(id, &attr, fn, arg), 0);
}

static void *wait_long(void *arg)
{
	(void)arg;
	ut_sleep_ns(60000000000);
	return NULL;
}

/* errno is the thread's own as long as it does not give way. */
static void *keep_errno(void *arg)
{
	uint64_t until_ns = ut_now_ns() + 100000000;

	(void)arg;
	while (ut_now_ns() < until_ns) {
		int wanted = (int)(intptr_t)arg;

		errno = wanted;
		for (volatile int i = 0; i < 100000; i++)
			;
		CHECK_IS(errno, wanted);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	const char *what = argc > 3 ? argv[3] : "";
	int depth = 1 << 20;
	ut_id ids[4];

	check_init(&config);
	if (!strcmp(what, "overflow")) {
		start("deep", overflow, &depth, &ids[0]);
		ut_join(ids[0], NULL);
	} else if (!strcmp(what, "deadlock")) {
		start("one", lock_both, &first, &ids[0]);
		start("two", lock_both, &second, &ids[1]);
		ut_join(ids[0], NULL);
	} else if (!strcmp(what, "quit")) {
		start("sleeper", wait_long, NULL, &ids[0]);
		ut_yield();
		ut_sleep_ns(1000000);
		kill(getpid(), SIGQUIT);
		ut_dump();
		CHECK_IS(ut_cancel(ids[0]), 0);
		CHECK_IS(ut_join(ids[0], NULL), 0);
		CHECK_IS(ut_exit(), 0);
	} else if (!strcmp(what, "segv")) {
		volatile int *volatile nowhere = NULL;

		*nowhere = 1;
	} else if (!strcmp(what, "errno")) {
		for (intptr_t i = 0; i < 4; i++)
			start("errno", keep_errno, (void *)(i + 5), &ids[i]);
		for (int i = 0; i < 4; i++)
			CHECK_IS(ut_join(ids[i], NULL), 0);
		CHECK_IS(ut_exit(), 0);
	}
	puts("good");
	return 0;
}
