/* SPDX-License-Identifier: MIT */
/* life.c - threads are created, joined, detached, and take turns. */
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/auxv.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#define ROUNDS 100
#define NR_SMALL 40	/* more than there are places where a stack begins */
#define NR_WARM 200

static char order[4 * ROUNDS + 1];
static atomic_int nr_order;
static atomic_int nr_done;

static void *note(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		order[atomic_fetch_add(&nr_order, 1)] = *(char *)arg;
		CHECK_IS(ut_yield(), 0);
	}
	return arg;
}

static void test_order(int nr_cpus)
{
	char names[] = "abc";
	ut_id ids[3];
	void *result;

	for (int i = 0; i < 3; i++)
		CHECK_IS(ut_create(&ids[i], NULL, note, &names[i]), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_IS(ut_join(ids[i], &result), 0);
		CHECK(result == &names[i]);
	}
	CHECK_IS(strlen(order), 3 * ROUNDS);
	for (int i = 0; nr_cpus == 1 && i < 3 * ROUNDS; i++)
		CHECK_IS(order[i], names[i % 3]);
}

static void *count(void *arg)
{
	atomic_fetch_add(&nr_done, 1);
	return arg;
}

static void *exit_early(void *arg)
{
	ut_thread_exit(arg);
}

static void *join_self(void *arg)
{
	ut_id self = ut_self();

	(void)arg;
	return (void *)(intptr_t)ut_join(self, NULL);
}

static void test_errors(void)
{
	struct ut_attr attr = UT_ATTR_INIT;
	ut_id id;
	void *result;

	CHECK_IS(ut_init(NULL), -EBUSY);
	CHECK_IS(ut_create(&id, NULL, NULL, NULL), -EINVAL);
	CHECK_IS(ut_create(NULL, NULL, count, NULL), -EINVAL);
	CHECK_IS(ut_join(0, NULL), -ESRCH);
	CHECK_IS(ut_join(12345678, NULL), -ESRCH);
	CHECK_IS(ut_create(&id, NULL, join_self, NULL), 0);
	CHECK_IS(ut_join(id, &result), 0);
	CHECK_IS((intptr_t)result, -EDEADLK);
	CHECK_IS(ut_join(id, NULL), -ESRCH);
	CHECK_IS(ut_detach(id), -ESRCH);
	attr.stack_bytes = 4096;
	CHECK_IS(ut_create(&id, &attr, count, NULL), -EINVAL);
	attr.stack_bytes = 0;
	attr.given = UT_GIVES_WEIGHT;
	attr.weight = 0;
	CHECK_IS(ut_create(&id, &attr, count, NULL), -EINVAL);
	attr.given = 0;
	attr.attr_bytes = 1;
	CHECK_IS(ut_create(&id, &attr, count, NULL), -EINVAL);
	CHECK_IS(ut_create(&id, NULL, exit_early, &id), 0);
	CHECK_IS(ut_join(id, &result), 0);
	CHECK(result == &id);
}

static void test_detached(void)
{
	struct ut_attr attr = UT_ATTR_INIT;
	ut_id id;

	attr.is_detached = 1;
	attr.stack_bytes = 256 * 1024;
	for (int i = 0; i < 1000; i++)
		CHECK_IS(ut_create(NULL, i % 2 ? &attr : NULL, count, NULL), i % 2 ? 0 : -EINVAL);
	for (int i = 0; i < 500; i++) {
		CHECK_IS(ut_create(&id, NULL, count, NULL), 0);
		CHECK_IS(ut_detach(id), 0);
	}
}

/* 16 KiB, and what a signal takes. Calls nothing down there, no sanitizer either. */
static __attribute__((noinline, no_sanitize("address", "thread"))) void touch_low(void)
{
	volatile char *low = __builtin_alloca(16384 + getauxval(AT_MINSIGSTKSZ) - 1024);

	*low = 1;
}

/* No signal may come while there is no room left for it. */
static void *use_stack(void *arg)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	touch_low();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return arg;
}

/* Wherever in its pages a stack begins. */
static void test_smallest_stacks(void)
{
	struct ut_attr attr = UT_ATTR_INIT;
	ut_id ids[NR_SMALL];
	int nr = 0;

	attr.stack_bytes = 16384;
	while (ut_create(&ids[0], &attr, use_stack, NULL))
		attr.stack_bytes += 1024;
	while (++nr < NR_SMALL)
		CHECK_IS(ut_create(&ids[nr], &attr, use_stack, NULL), 0);
	while (nr--)
		CHECK_IS(ut_join(ids[nr], NULL), 0);
}

static void *tell_stack(void *arg)
{
	*(uintptr_t *)arg = (uintptr_t)__builtin_frame_address(0) / 4096;
	return arg;
}

/*
 * However many there are: who begins takes the stack of one that has just ended. Only
 * who was made to give way at its start keeps one.
 */
static void test_warm_stacks(void)
{
	uintptr_t pages[NR_WARM];
	ut_id ids[NR_WARM];
	int nr_others = 0;

	for (int i = 0; i < NR_WARM; i++)
		CHECK_IS(ut_create(&ids[i], NULL, tell_stack, &pages[i]), 0);
	for (int i = 0; i < NR_WARM; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	for (int i = 0; i < NR_WARM; i++) {
		bool is_new = true;

		for (int j = 0; j < i; j++)
			is_new &= pages[j] != pages[i];
		nr_others += is_new;
	}
	CHECK(nr_others < NR_WARM / 2);
}

static void test_sleep(void)
{
	uint64_t before_ns = ut_now_ns();

	CHECK_IS(ut_sleep_ns(2000000), 0);
	CHECK(ut_now_ns() - before_ns >= 2000000);
	CHECK_IS(ut_sleep_ns(0), 0);
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);

	CHECK_IS(ut_yield(), -EPERM);
	CHECK_IS(ut_exit(), -EPERM);
	/* Nothing of one machine is left when the next one starts. */
	for (int i = 0; i < 3; i++) {
		memset(order, 0, sizeof(order));
		nr_order = 0;
		nr_done = 0;
		check_init(&config);
		test_order((int)config.nr_cpus);
		test_errors();
		test_sleep();
		test_detached();
		test_smallest_stacks();
		test_warm_stacks();
		CHECK_IS(ut_exit(), 0);
		CHECK_IS(nr_done, 1000);
	}
	puts("good");
	return 0;
}
