/* SPDX-License-Identifier: MIT */
/*
 * select.c - ut_select(): what it returns, in which order, and that nothing is lost.
 *
 *	select POLICY CPUS
 */
#include "check.h"

#include <errno.h>

#define NR_CHANS 4
#define NR_THREADS 6
#define NR_MESSAGES 300
#define NR_DRAWS 3000

static ut_chan *chans[NR_CHANS];

static void create_all(size_t capacity)
{
	for (int i = 0; i < NR_CHANS; i++)
		CHECK_IS(ut_chan_create(&chans[i], sizeof(long), capacity), 0);
}

static void destroy_all(void)
{
	for (int i = 0; i < NR_CHANS; i++)
		CHECK_IS(ut_chan_destroy(chans[i]), 0);
}

static void try_without_waiting(void)
{
	long sent = 7, got = 0;
	struct ut_case cases[] = { UT_CASE_RECV(chans[0], &got), UT_CASE_SEND(chans[1], &sent),
				   UT_CASE_RECV(NULL, &got) };
	struct ut_case bad = UT_CASE_RECV(chans[0], NULL);
	uint64_t now_ns;

	CHECK_IS(ut_select(cases, 1, 0), -ETIMEDOUT);
	CHECK_IS(ut_select(cases + 2, 1, 0), -ETIMEDOUT);
	CHECK_IS(ut_select(NULL, 0, 0), -ETIMEDOUT);
	CHECK_IS(ut_select(&bad, 1, 0), -EINVAL);
	CHECK_IS(ut_select(cases, -1, 0), -EINVAL);
	CHECK_IS(ut_select(cases, 3, 0), 1);
	CHECK_IS(cases[1].result, 0);
	CHECK_IS(ut_chan_recv(chans[1], &got), 0);
	CHECK_IS(got, 7);
	ut_preempt_disable();
	CHECK_IS(ut_select(cases, 1, UT_NEVER), -EPERM);
	CHECK_IS(ut_select(cases, 2, UT_NEVER), 1);
	ut_preempt_enable();
	CHECK_IS(ut_chan_recv(chans[1], &got), 0);
	now_ns = ut_now_ns();
	CHECK_IS(ut_select(cases, 1, now_ns + 1000000), -ETIMEDOUT);
	CHECK(ut_now_ns() >= now_ns + 1000000);
	ut_set_deadline(ut_now_ns() + 1000000);
	CHECK_IS(ut_select(cases, 1, UT_NEVER), -ETIMEDOUT);
	ut_set_deadline(UT_NEVER);
	/* It is in no list any more. */
	destroy_all();
}

/* Of three that can always, each is as likely: a third, give or take 7 deviations. */
static void be_fair(void)
{
	int nr_chosen[NR_CHANS] = { 0 };
	long got = 0;

	create_all(1);
	for (int i = 0; i < NR_DRAWS; i++) {
		struct ut_case cases[] = { UT_CASE_RECV(chans[0], &got),
					   UT_CASE_SEND(chans[1], &got),
					   UT_CASE_SEND(chans[2], &got),
					   UT_CASE_SEND(chans[3], &got) };
		int which = ut_select(cases, NR_CHANS, UT_NEVER);

		CHECK(which > 0);
		CHECK_IS(ut_chan_recv(chans[which], &got), 0);
		nr_chosen[which]++;
	}
	for (int i = 1; i < NR_CHANS; i++)
		CHECK(nr_chosen[i] > NR_DRAWS / 3 - 190 && nr_chosen[i] < NR_DRAWS / 3 + 190);
	destroy_all();
}

/* With one CPU and no preemption: whoever has set it blocks before another runs. */
static int nr_blocked;

static void await_blocked(int nr)
{
	while (nr_blocked < nr)
		ut_yield();
}

static void *select_forever(void *arg)
{
	long got = 0;
	struct ut_case cases[] = { UT_CASE_RECV(chans[0], &got), UT_CASE_SEND(chans[1], &got) };
	intptr_t which;

	(void)arg;
	nr_blocked = 1;
	which = ut_select(cases, 2, UT_NEVER);
	return (void *)(which < 0 ? which : cases[which].result ? 100 + which : which);
}

static void end_waits(void)
{
	void *result;
	long message = 3;
	ut_id id;

	for (int how = 0; how < 4; how++) {
		create_all(0);
		nr_blocked = 0;
		CHECK_IS(ut_create(&id, NULL, select_forever, NULL), 0);
		await_blocked(1);
		CHECK_IS(ut_chan_destroy(chans[0]), -EBUSY);
		CHECK_IS(ut_chan_destroy(chans[1]), -EBUSY);
		if (how == 0)
			CHECK_IS(ut_chan_send(chans[0], &message), 0);
		else if (how == 1)
			CHECK_IS(ut_chan_try_recv(chans[1], &message), 0);
		else if (how == 2)
			CHECK_IS(ut_chan_close(chans[1]), 0);
		else
			CHECK_IS(ut_cancel(id), 0);
		CHECK_IS(ut_join(id, &result), 0);
		CHECK_IS((intptr_t)result, how == 2 ? 101 : how == 3 ? -ECANCELED : how);
		destroy_all();
	}
}

/* Waiters of both kinds are served in order of arrival. */
static long order[3];

static void *take_one(void *arg)
{
	long got = 0;
	struct ut_case it = UT_CASE_RECV(chans[0], &got);

	nr_blocked++;
	if ((intptr_t)arg == 1)
		CHECK_IS(ut_select(&it, 1, UT_NEVER), 0);
	else
		CHECK_IS(ut_chan_recv(chans[0], &got), 0);
	order[got] = (intptr_t)arg;
	return NULL;
}

static void keep_order(void)
{
	ut_id ids[3];

	create_all(0);
	nr_blocked = 0;
	for (int i = 0; i < 3; i++) {
		CHECK_IS(ut_create(&ids[i], NULL, take_one, (void *)(intptr_t)i), 0);
		await_blocked(i + 1);
	}
	for (long i = 0; i < 3; i++)
		CHECK_IS(ut_chan_send(chans[0], &i), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_IS(ut_join(ids[i], NULL), 0);
		CHECK_IS(order[i], i);
	}
	destroy_all();
}

/*
 * Threads that both send their own messages and receive those of others, on any channel,
 * some of them with a deadline that comes at once, while others do the same with single
 * calls. Every message comes once, and all end.
 */
static long nr_got, sum_got;

static void note(long got)
{
	__atomic_add_fetch(&sum_got, got, __ATOMIC_RELAXED);
	/* The last one: nobody sends any more. */
	if (__atomic_add_fetch(&nr_got, 1, __ATOMIC_SEQ_CST) == NR_THREADS * NR_MESSAGES) {
		for (int i = 0; i < NR_CHANS; i++)
			CHECK_IS(ut_chan_close(chans[i]), 0);
	}
}

static void *exchange(void *arg)
{
	intptr_t me = (intptr_t)arg;
	long next = 0, got = 0;

	for (unsigned int i = 0;; i++) {
		long message = me * NR_MESSAGES + next;
		struct ut_case cases[] = {
			UT_CASE_RECV(chans[i % NR_CHANS], &got),
			UT_CASE_RECV(chans[(i + me) % NR_CHANS], &got),
			UT_CASE_SEND(next < NR_MESSAGES ? chans[(i + 1) % NR_CHANS] : NULL,
				     &message),
			UT_CASE_SEND(next < NR_MESSAGES ? chans[i % NR_CHANS] : NULL, &message),
		};
		uint64_t until_ns = me % 2 ? ut_now_ns() + 20000 : UT_NEVER;
		int which;

		if (!me && i % 2 && next < NR_MESSAGES) {
			if (!ut_chan_try_send(chans[i % NR_CHANS], &message))
				next++;
			continue;
		}
		which = ut_select(cases, 4, until_ns);
		if (which == -ETIMEDOUT)
			continue;
		CHECK(which >= 0);
		if (cases[which].result == -EPIPE)
			return NULL;
		CHECK_IS(cases[which].result, 0);
		if (which < 2)
			note(got);
		else
			next++;
	}
}

static void lose_nothing(size_t capacity)
{
	long nr = NR_THREADS * NR_MESSAGES;
	ut_id ids[NR_THREADS];

	nr_got = sum_got = 0;
	create_all(capacity);
	for (intptr_t i = 0; i < NR_THREADS; i++)
		CHECK_IS(ut_create(&ids[i], NULL, exchange, (void *)i), 0);
	for (int i = 0; i < NR_THREADS; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(nr_got, nr);
	CHECK_IS(sum_got, nr * (nr - 1) / 2);
	destroy_all();
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv), alone = config;
	struct ut_case outside = UT_CASE_RECV(NULL, &outside);

	CHECK_IS(ut_select(&outside, 1, 0), -EPERM);
	alone.nr_cpus = 1;
	alone.flags = UT_NO_PREEMPTION;
	check_init(&alone);
	create_all(1);
	try_without_waiting();
	be_fair();
	end_waits();
	keep_order();
	CHECK_IS(ut_exit(), 0);
	check_init(&config);
	for (size_t capacity = 0; capacity < 3; capacity++)
		lose_nothing(capacity);
	CHECK_IS(ut_exit(), 0);
	return 0;
}
