/* SPDX-License-Identifier: MIT */
/* readers.c - a lock of readers and writers: which own it together, and in which order. */
#include "check.h"

#include <errno.h>

#define NR 8
#define ROUNDS 300
#define SHORT_NS 2000000

static ut_rwlock lock = UT_RWLOCK_INIT;
static ut_barrier all_read = UT_BARRIER_INIT(NR);
static ut_sem has_locked = UT_SEM_INIT(0), may_unlock = UT_SEM_INIT(0);
static int nr_readers, nr_writers, nr_written;
static char order[5];
static int nr_order;
static int has_given_up; /* on a busy machine before it was seen to wait */

static void *use(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int is_write = (i + (int)(intptr_t)arg) % 4 == 0;

		CHECK_IS(is_write ? ut_rwlock_wrlock(&lock) : ut_rwlock_rdlock(&lock), 0);
		__atomic_add_fetch(is_write ? &nr_writers : &nr_readers, 1, __ATOMIC_SEQ_CST);
		if (i % 10 == 0)
			ut_yield();
		if (is_write)
			nr_written++;
		CHECK_IS(__atomic_load_n(&nr_writers, __ATOMIC_SEQ_CST), is_write);
		CHECK(!is_write || !__atomic_load_n(&nr_readers, __ATOMIC_SEQ_CST));
		__atomic_sub_fetch(is_write ? &nr_writers : &nr_readers, 1, __ATOMIC_SEQ_CST);
		CHECK_IS(ut_rwlock_unlock(&lock), 0);
	}
	return NULL;
}

/* All are inside at once, or no reader comes out. */
static void *read_together(void *arg)
{
	CHECK_IS(ut_rwlock_rdlock(&lock), 0);
	CHECK(ut_barrier_wait(&all_read) >= 0);
	CHECK_IS(ut_rwlock_unlock(&lock), 0);
	return arg;
}

static void *hold(void *arg)
{
	CHECK_IS(arg ? ut_rwlock_wrlock(&lock) : ut_rwlock_rdlock(&lock), 0);
	order[nr_order++] = arg ? 'w' : 'r';
	CHECK_IS(ut_sem_post(&has_locked), 0);
	CHECK_IS(ut_sem_wait(&may_unlock), 0);
	CHECK_IS(ut_rwlock_unlock(&lock), 0);
	return NULL;
}

/* Gives up behind a reader; then the reader behind it need not wait any more. */
static void *give_up(void *arg)
{
	ut_set_deadline(ut_now_ns() + SHORT_NS);
	CHECK_IS(ut_rwlock_wrlock(&lock), -ETIMEDOUT);
	__atomic_store_n(&has_given_up, 1, __ATOMIC_SEQ_CST);
	return arg;
}

static void join_all(const ut_id *ids, int nr)
{
	for (int i = 0; i < nr; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
}

static void start(ut_id *id, ut_fn fn, intptr_t arg)
{
	CHECK_IS(ut_create(id, NULL, fn, (void *)arg), 0);
}

static void wait_until_queued(void)
{
	/* A reader gets in until there is a waiter before it. */
	while (!__atomic_load_n(&has_given_up, __ATOMIC_SEQ_CST) && !ut_rwlock_tryrdlock(&lock)) {
		CHECK_IS(ut_rwlock_unlock(&lock), 0);
		ut_yield();
	}
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	ut_id ids[NR];

	CHECK_IS(ut_rwlock_rdlock(&lock), -EPERM);
	check_init(&config);
	for (int i = 0; i < NR; i++)
		start(&ids[i], use, i);
	join_all(ids, NR);
	CHECK_IS(nr_written, NR * ROUNDS / 4);
	for (int i = 0; i < NR; i++)
		start(&ids[i], read_together, 0);
	join_all(ids, NR);
	CHECK_IS(ut_rwlock_unlock(&lock), -EPERM);
	/* Neither kind gets in before one that waits. */
	start(&ids[0], hold, 0);
	CHECK_IS(ut_sem_wait(&has_locked), 0);
	CHECK_IS(ut_rwlock_trywrlock(&lock), -EBUSY);
	start(&ids[1], hold, 1);
	wait_until_queued();
	start(&ids[2], hold, 0);
	for (int i = 0; i < 3; i++) {
		CHECK_IS(ut_sem_post(&may_unlock), 0);
		if (i < 2)
			CHECK_IS(ut_sem_wait(&has_locked), 0);
	}
	join_all(ids, 3);
	CHECK_IS(strcmp(order, "rwr"), 0);
	start(&ids[0], hold, 0);
	CHECK_IS(ut_sem_wait(&has_locked), 0);
	start(&ids[1], give_up, 0);
	wait_until_queued();
	start(&ids[2], hold, 0);
	CHECK_IS(ut_sem_wait(&has_locked), 0);
	for (int i = 0; i < 2; i++)
		CHECK_IS(ut_sem_post(&may_unlock), 0);
	join_all(ids, 3);
	CHECK_IS(ut_rwlock_trywrlock(&lock), 0);
	CHECK_IS(ut_rwlock_tryrdlock(&lock), -EBUSY);
	CHECK_IS(ut_rwlock_unlock(&lock), 0);
	CHECK_IS(ut_exit(), 0);
	return 0;
}
