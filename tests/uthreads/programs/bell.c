/* SPDX-License-Identifier: MIT */
/*
 * bell.c - a CPU's bell is rung, from outside, while it wakes up by itself.
 *
 * Then it runs a thread, with an endless slice, that calls nothing, and whoever wants
 * something of it has to send a signal. For a build with forced points, in which the
 * one who rings stops for 100 us between looking at the bell and ringing it.
 */
#include "check.h"

#define NR_ROUNDS 10
#define SLEEP_NS 1000000
#define EARLY_NS 30000

static ut_sem bell = UT_SEM_INIT(0);
static uint64_t wakes_ns;
static int is_awake, must_end;

static void *wake_and_stay(void *arg)
{
	__atomic_store_n(&wakes_ns, ut_now_ns() + SLEEP_NS, __ATOMIC_SEQ_CST);
	CHECK_IS(ut_sleep_ns(SLEEP_NS), 0);
	__atomic_store_n(&is_awake, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&must_end, __ATOMIC_RELAXED))
		;
	return arg;
}

/* On a helper: it is done a moment before the sleeper wakes up. */
static int be_done_in_time(void *arg)
{
	uint64_t at_ns;

	do {
		at_ns = __atomic_load_n(&wakes_ns, __ATOMIC_SEQ_CST);
	} while (!at_ns || ut_now_ns() < at_ns - EARLY_NS);
	return arg != NULL;
}

static void *be_rung_for(void *arg)
{
	CHECK_IS(ut_outside(be_done_in_time, NULL), 0);
	CHECK_IS(ut_sem_wait(&bell), 0);
	__atomic_store_n(&must_end, 1, __ATOMIC_RELAXED);
	return arg;
}

static void round_of(struct ut_attr *there)
{
	struct ut_attr here = UT_ATTR_INIT;
	uint64_t cpu_0 = 1;
	ut_id stays, rung;

	here.affinity = &cpu_0;
	here.affinity_words = 1;
	wakes_ns = 0;
	is_awake = 0;
	must_end = 0;
	CHECK_IS(ut_create(&rung, there, be_rung_for, NULL), 0);
	CHECK_IS(ut_create(&stays, there, wake_and_stay, NULL), 0);
	while (!__atomic_load_n(&is_awake, __ATOMIC_SEQ_CST))
		CHECK_IS(ut_sleep_ns(SLEEP_NS), 0);
	/* Whoever rang has done so by now. */
	CHECK_IS(ut_sleep_ns(SLEEP_NS), 0);
	CHECK_IS(ut_sem_post(&bell), 0);
	/* Off its CPU, so that the other one can run there, and end both. */
	CHECK_IS(ut_setattr(stays, &here), 0);
	CHECK_IS(ut_join(rung, NULL), 0);
	CHECK_IS(ut_join(stays, NULL), 0);
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	struct ut_attr there = UT_ATTR_INIT;
	uint64_t cpu_1 = 2;

	/* It holds no thread-local address, but remains of one may be in a register. */
	config.flags = UT_MIGRATE_PREEMPTED;
	check_init(&config);
	there.affinity = &cpu_1;
	there.affinity_words = 1;
	for (int i = 0; i < NR_ROUNDS; i++)
		round_of(&there);
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
