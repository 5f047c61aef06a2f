/* SPDX-License-Identifier: MIT */
/*
 * doze.c - nobody runs, again and again, and yet it is no deadlock.
 *
 * A thread sleeps and computes for about as long as a look at all threads takes, so
 * that whoever looks sees each thing at another moment. It lets the first thread go
 * on now and then, whose CPU looks whenever it has nothing to do again.
 */
#include "check.h"

#define ROUNDS 400
#define PART_NS 100000

static ut_sem turn = UT_SEM_INIT(0);

static void *doze(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_IS(ut_sem_post(&turn), 0);
		for (int j = 0; j < 3; j++) {
			uint64_t until_ns;

			CHECK_IS(ut_sleep_ns(PART_NS + (uint64_t)(i % 7) * 10000), 0);
			until_ns = ut_now_ns() + PART_NS;
			while (ut_now_ns() < until_ns)
				;
		}
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	ut_id id;

	check_init(&config);
	CHECK_IS(ut_create(&id, NULL, doze, NULL), 0);
	for (int i = 0; i < ROUNDS; i++)
		CHECK_IS(ut_sem_wait(&turn), 0);
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
