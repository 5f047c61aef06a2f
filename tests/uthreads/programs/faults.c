/* SPDX-License-Identifier: MIT */
/* faults.c - what goes wrong is said: argument 3 names what. */
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static ut_mutex first, second;
static ut_barrier both_have_one = UT_BARRIER_INIT(2);

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

/* From a frame that is larger than the stack, the far end is written first. */
static void *large_frame(void *arg)
{
	volatile char used[100000];

	used[0] = *(volatile char *)arg;
	used[sizeof(used) - 1] = used[0];
	return (void *)(intptr_t)used[0];
}

static void *lock_both(void *arg)
{
	ut_mutex *own = arg;
	ut_mutex *other = own == &first ? &second : &first;

	ut_mutex_lock(own);
	ut_barrier_wait(&both_have_one);
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

static void *keep_mutex(void *arg)
{
	CHECK_IS(ut_mutex_lock(&first), 0);
	return arg;
}

static void refuse(const struct ut_attr *attr)
{
	ut_id id;

	CHECK_IS(ut_create(&id, attr, wait_long, NULL), -EINVAL);
}

static void test_attributes(void)
{
	const struct ut_attr good = UT_ATTR_INIT;
	uint64_t nowhere = 0, beyond = 1ULL << 63;
	struct ut_attr attr = good;

	attr.attr_bytes--;
	refuse(&attr);
	attr = good;
	attr.given = 0x100;
	refuse(&attr);
	attr = good;
	attr.stack_bytes = 16384;
	refuse(&attr);
	attr.stack_bytes = ~(size_t)0;
	refuse(&attr);
	attr = good;
	attr.given = UT_GIVES_WEIGHT;
	refuse(&attr);
	attr.weight = 10001;
	refuse(&attr);
	attr.given = UT_GIVES_TICKETS;
	refuse(&attr);
	attr = good;
	attr.affinity = &nowhere;
	attr.affinity_words = 1;
	refuse(&attr);
	attr.affinity = &beyond;
	refuse(&attr);
	attr.affinity_words = 0;
	refuse(&attr);
	CHECK_IS(ut_setattr(ut_self(), &attr), -EINVAL);
	attr.affinity = NULL;
	CHECK_IS(ut_setattr(0, &attr), -ESRCH);
	CHECK_IS(ut_setattr(ut_self(), &attr), 0);
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
	} else if (!strcmp(what, "large-frame")) {
		start("large", large_frame, &depth, &ids[0]);
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
	if (!strcmp(what, "mutex")) {
		start("owner", keep_mutex, NULL, &ids[0]);
		CHECK_IS(ut_join(ids[0], NULL), 0);
		CHECK_IS(ut_mutex_lock(&first), -EOWNERDEAD);
		CHECK_IS(ut_mutex_unlock(&first), 0);
		CHECK_IS(ut_join(ut_self(), NULL), -EDEADLK);
		CHECK_IS(ut_exit(), 0);
	} else if (!strcmp(what, "attributes")) {
		test_attributes();
		CHECK_IS(ut_exit(), 0);
	}
	puts("good");
	return 0;
}
