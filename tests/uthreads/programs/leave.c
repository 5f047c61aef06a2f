/* SPDX-License-Identifier: MIT */
/*
 * leave.c - a thread is asked to end, and leaves a barrier, while another one comes.
 *
 * It is not counted from the moment on in which it leaves the queue: nobody passes on
 * its account, and the barrier can be used again. For a build with forced points, in
 * which it stops for 100 us there.
 */
#include "check.h"

#include <errno.h>

#define NR_ROUNDS 20

static ut_barrier barrier = UT_BARRIER_INIT(2);
static int has_come, main_comes;

static void *first(void)
{
	return __atomic_load_n(&barrier.waiters_.first, __ATOMIC_SEQ_CST);
}

static void *leave(void *arg)
{
	CHECK_IS(ut_barrier_wait(&barrier), -ECANCELED);
	return arg;
}

static void *come_late(void *arg)
{
	while (!__atomic_load_n(&main_comes, __ATOMIC_SEQ_CST) || !first())
		CHECK_IS(ut_sleep_ns(100000), 0);
	__atomic_store_n(&has_come, 1, __ATOMIC_SEQ_CST);
	CHECK_IS(ut_barrier_wait(&barrier), 1);
	return arg;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	ut_id leaver, comer;

	check_init(&config);
	for (int i = 0; i < NR_ROUNDS; i++) {
		has_come = 0;
		main_comes = 0;
		CHECK_IS(ut_create(&leaver, NULL, leave, NULL), 0);
		while (!first())
			CHECK_IS(ut_sleep_ns(100000), 0);
		CHECK_IS(ut_create(&comer, NULL, come_late, NULL), 0);
		CHECK_IS(ut_cancel(leaver), 0);
		while (first())
			;
		__atomic_store_n(&main_comes, 1, __ATOMIC_SEQ_CST);
		CHECK_IS(ut_barrier_wait(&barrier), 0);
		CHECK(__atomic_load_n(&has_come, __ATOMIC_SEQ_CST));
		CHECK_IS(ut_join(leaver, NULL), 0);
		CHECK_IS(ut_join(comer, NULL), 0);
	}
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
