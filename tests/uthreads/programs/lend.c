/* SPDX-License-Identifier: MIT */
/*
 * lend.c - a mutex lends its owner the priority of the most urgent who waits.
 *
 *	lend POLICY 1 smallest|largest KNOB=VALUE...
 *
 * Each thread writes its letter when it has what it waits for. The first thread is the
 * most urgent: what it starts runs when it sleeps, the most urgent of them first. It
 * sleeps until each waits, since others may have the CPU for any time.
 */
#include "check.h"

#include <stdbool.h>

#define SHORT_NS 1000000

static bool is_largest;
static char order[32];
static int nr;
static ut_sem gates[2];
static ut_mutex *locks;

/* @rank: 0 is the most urgent. */
static int priority_of(int rank)
{
	return is_largest ? 90 - rank : rank;
}

static void write_letter(char letter)
{
	order[nr++] = letter;
}

/* Holds the first mutex while it waits to go on; then its own priority is enough. */
static void *be_low(void *arg)
{
	CHECK_IS(ut_mutex_lock(&locks[0]), 0);
	CHECK_IS(ut_sem_wait(&gates[0]), 0);
	write_letter('l');
	CHECK_IS(ut_mutex_unlock(&locks[0]), 0);
	CHECK_IS(ut_yield(), 0);
	write_letter('L');
	return arg;
}

/* Holds the second while it waits for the first. */
static void *be_between(void *arg)
{
	CHECK_IS(ut_mutex_lock(&locks[1]), 0);
	CHECK_IS(ut_mutex_lock(&locks[0]), 0);
	write_letter('b');
	CHECK_IS(ut_mutex_unlock(&locks[0]), 0);
	CHECK_IS(ut_mutex_unlock(&locks[1]), 0);
	CHECK_IS(ut_yield(), 0);
	write_letter('B');
	return arg;
}

static void *be_high(void *arg)
{
	ut_mutex *mutex = arg;

	CHECK_IS(ut_mutex_lock(mutex), 0);
	write_letter('h');
	CHECK_IS(ut_mutex_unlock(mutex), 0);
	return arg;
}

static void *be_middle(void *arg)
{
	CHECK_IS(ut_sem_wait(&gates[1]), 0);
	write_letter('m');
	return arg;
}

/* Until it waits, as the first, in @waiters. */
static ut_id start(ut_fn fn, void *arg, int rank, const struct ut_waiters_ *waiters)
{
	struct ut_attr attr = UT_ATTR_INIT;
	ut_id id;

	attr.given = UT_GIVES_PRIORITY;
	attr.priority = priority_of(rank);
	CHECK_IS(ut_create(&id, &attr, fn, arg), 0);
	do {
		CHECK_IS(ut_sleep_ns(SHORT_NS), 0);
	} while (!__atomic_load_n(&waiters->first, __ATOMIC_SEQ_CST));
	return id;
}

/* The low one and the middle one may go on, and the most urgent looks on. */
static void see(const char *wanted, ut_id *ids, int nr_ids)
{
	CHECK_IS(ut_sem_post(&gates[1]), 0);
	CHECK_IS(ut_sem_post(&gates[0]), 0);
	for (int i = 0; i < nr_ids; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	if (strcmp(order, wanted)) {
		fprintf(stderr, "%s, not %s\n", order, wanted);
		exit(1);
	}
	memset(order, 0, sizeof(order));
	nr = 0;
}

static void set_rank(ut_id id, int rank)
{
	struct ut_attr attr = UT_ATTR_INIT;

	attr.given = UT_GIVES_PRIORITY;
	attr.priority = priority_of(rank);
	CHECK_IS(ut_setattr(id, &attr), 0);
	CHECK_IS(ut_getattr(id, &attr), 0);
	CHECK_IS(attr.priority, priority_of(rank));
}

static void test_one(const char *wanted, int new_rank)
{
	ut_id ids[3];

	ids[0] = start(be_low, NULL, 8, &gates[0].waiters_);
	ids[1] = start(be_high, &locks[0], 1, &locks[0].waiters_);
	ids[2] = start(be_middle, NULL, 5, &gates[1].waiters_);
	if (new_rank)
		set_rank(ids[0], new_rank);
	see(wanted, ids, 3);
}

/* Who lends to one that waits lends to whom it waits for. */
static void test_chain(const char *wanted)
{
	ut_id ids[4];

	ids[0] = start(be_low, NULL, 9, &gates[0].waiters_);
	ids[1] = start(be_between, NULL, 8, &locks[0].waiters_);
	ids[2] = start(be_high, &locks[1], 1, &locks[1].waiters_);
	ids[3] = start(be_middle, NULL, 5, &gates[1].waiters_);
	see(wanted, ids, 4);
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	ut_mutex plain[2] = { UT_MUTEX_INIT, UT_MUTEX_INIT };
	ut_mutex lending[2];

	CHECK(argc > 3);
	is_largest = !strcmp(argv[3], "largest");
	for (int i = 0; i < 2; i++)
		lending[i] = (ut_mutex)UT_MUTEX_INIT_INHERIT(
			is_largest ? UT_MUTEX_INHERIT_LARGEST : UT_MUTEX_INHERIT_SMALLEST);
	config.sets = (const char *const *)&argv[4];
	check_init(&config);
	set_rank(ut_self(), 0);
	locks = plain;
	test_one("mlhL", 0);
	locks = lending;
	test_one("lhmL", 0);
	/* Whatever it is given meanwhile: what it was lent is more urgent. */
	test_one("lhmL", 9);
	test_one("lhmL", 7);
	/* Or less. */
	test_one("lLhm", -1);
	test_chain("lbhmBL");
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
