/* SPDX-License-Identifier: MIT */
/*
 * waker.c - a waker that often blocks at once, so that its kicks are put off, and then
 * computes on instead: what it has woken runs on the other CPU all the same, although
 * no slice ends. And threads that are handed from CPU to CPU say so.
 */
#include "check.h"

#define NR_ROUNDS 50
#define NR_TRIPS 200

static ut_sem there = UT_SEM_INIT(0), back = UT_SEM_INIT(0), set = UT_SEM_INIT(0);
static int is_set;

static void *answer(void *arg)
{
	for (int i = 0; i < NR_ROUNDS * NR_TRIPS; i++) {
		CHECK_IS(ut_sem_wait(&there), 0);
		CHECK_IS(ut_sem_post(&back), 0);
	}
	return arg;
}

static void *set_it(void *arg)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		CHECK_IS(ut_sem_wait(&set), 0);
		__atomic_store_n(&is_set, 1, __ATOMIC_SEQ_CST);
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	ut_id answers, sets;

	check_init(&config);
	CHECK_IS(ut_create(&answers, NULL, answer, NULL), 0);
	CHECK_IS(ut_create(&sets, NULL, set_it, NULL), 0);
	for (int round = 0; round < NR_ROUNDS; round++) {
		for (int i = 0; i < NR_TRIPS; i++) {
			CHECK_IS(ut_sem_post(&there), 0);
			CHECK_IS(ut_sem_wait(&back), 0);
			CHECK((uint32_t)ut_cpu() < config.nr_cpus);
		}
		CHECK_IS(ut_sem_post(&set), 0);
		while (!__atomic_load_n(&is_set, __ATOMIC_SEQ_CST))
			;
		is_set = 0;
	}
	CHECK_IS(ut_join(answers, NULL), 0);
	CHECK_IS(ut_join(sets, NULL), 0);
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
