/* SPDX-License-Identifier: MIT */
/* sync.c - mutexes, conditions, semaphores, barriers and channels, many at once. */
#include "check.h"

#include <errno.h>

#define NR 8
#define ROUNDS 300

static ut_mutex mutex;
static ut_cond cond = UT_COND_INIT;
static ut_sem sem = UT_SEM_INIT(2);
static ut_barrier barrier = UT_BARRIER_INIT(NR);
static long shared, nr_inside, turn, arrived[NR], nr_waiting, nr_woken;
static ut_chan *there, *back;

static void run_all(ut_fn fn)
{
	ut_id ids[NR];

	for (intptr_t i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, fn, (void *)i), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
}

static void *add(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_IS(ut_mutex_lock(&mutex), 0);
		long was = shared;

		if (i % 10 == 0)
			ut_yield();
		shared = was + 1;
		CHECK_IS(ut_mutex_unlock(&mutex), 0);
	}
	return arg;
}

static void *take_turns(void *arg)
{
	for (int i = 0; i < ROUNDS / 10; i++) {
		ut_mutex_lock(&mutex);
		while (turn % NR != (intptr_t)arg)
			CHECK_IS(ut_cond_wait(&cond, &mutex), 0);
		turn++;
		CHECK_IS(ut_cond_broadcast(&cond), 0);
		ut_mutex_unlock(&mutex);
	}
	return NULL;
}

static void *wait_for_signal(void *arg)
{
	CHECK_IS(ut_mutex_lock(&mutex), 0);
	nr_waiting++;
	CHECK_IS(ut_cond_wait(&cond, &mutex), 0);
	arrived[nr_woken++] = (intptr_t)arg;
	CHECK_IS(ut_mutex_unlock(&mutex), 0);
	return arg;
}

/* Until @nr, which the mutex protects, is @wanted. */
static void wait_until(const long *nr, long wanted)
{
	long is = -1;

	while (is != wanted) {
		ut_yield();
		CHECK_IS(ut_mutex_lock(&mutex), 0);
		is = *nr;
		CHECK(is <= wanted);
		CHECK_IS(ut_mutex_unlock(&mutex), 0);
	}
}

/* A signal wakes one, who has waited longest; without a waiter it is forgotten. */
static void test_signal(void)
{
	ut_id ids[NR];

	CHECK_IS(ut_cond_signal(&cond), 0);
	for (intptr_t i = 0; i < NR; i++) {
		CHECK_IS(ut_create(&ids[i], NULL, wait_for_signal, (void *)i), 0);
		wait_until(&nr_waiting, i + 1);
	}
	for (int i = 0; i < NR; i++) {
		CHECK_IS(nr_woken, i);
		CHECK_IS(ut_cond_signal(&cond), 0);
		wait_until(&nr_woken, i + 1);
		CHECK_IS(arrived[i], i);
	}
	for (int i = 0; i < NR; i++) {
		CHECK_IS(ut_join(ids[i], NULL), 0);
		arrived[i] = 0;
	}
}

static void *enter(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_IS(ut_sem_wait(&sem), 0);
		CHECK(__atomic_add_fetch(&nr_inside, 1, __ATOMIC_SEQ_CST) <= 2);
		if (i % 7 == 0)
			ut_yield();
		__atomic_sub_fetch(&nr_inside, 1, __ATOMIC_SEQ_CST);
		CHECK_IS(ut_sem_post(&sem), 0);
	}
	return arg;
}

static void *march(void *arg)
{
	intptr_t me = (intptr_t)arg;
	int nr_last = 0;

	for (int i = 0; i < ROUNDS; i++) {
		__atomic_store_n(&arrived[me], i + 1, __ATOMIC_SEQ_CST);
		int last = ut_barrier_wait(&barrier);

		CHECK(last == 0 || last == 1);
		nr_last += last;
		for (int j = 0; j < NR; j++)
			CHECK(__atomic_load_n(&arrived[j], __ATOMIC_SEQ_CST) >= i + 1);
	}
	__atomic_add_fetch(&shared, nr_last, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *echo(void *arg)
{
	uint64_t value;

	while (ut_chan_recv(there, &value) == 0) {
		value *= 3;
		CHECK_IS(ut_chan_send(back, &value), 0);
	}
	return arg;
}

static void test_channels(size_t capacity)
{
	ut_id ids[NR];
	uint64_t sum = 0, value;

	CHECK_IS(ut_chan_create(&there, 0, 1), -EINVAL);
	CHECK_IS(ut_chan_create(&there, sizeof(value), capacity), 0);
	CHECK_IS(ut_chan_create(&back, sizeof(value), ROUNDS), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, echo, NULL), 0);
	for (value = 0; value < ROUNDS; value++)
		CHECK_IS(ut_chan_send(there, &value), 0);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_IS(ut_chan_recv(back, &value), 0);
		sum += value;
	}
	CHECK_IS(sum, 3ULL * ROUNDS * (ROUNDS - 1) / 2);
	CHECK_IS(ut_chan_try_recv(back, &value), -EAGAIN);
	CHECK_IS(ut_chan_close(there), 0);
	CHECK_IS(ut_chan_close(there), -EPIPE);
	CHECK_IS(ut_chan_send(there, &value), -EPIPE);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(ut_chan_destroy(there), 0);
	CHECK_IS(ut_chan_destroy(back), 0);
}

static void *wait_for_ever(void *arg)
{
	switch ((intptr_t)arg) {
	case 0:
		CHECK_IS(ut_sleep_ns(1000000000000), -ECANCELED);
		break;
	case 1:
		ut_mutex_lock(&mutex);
		CHECK_IS(ut_cond_wait(&cond, &mutex), -ECANCELED);
		CHECK_IS(ut_mutex_unlock(&mutex), 0);
		break;
	case 2:
		while (ut_sem_trywait(&sem) == 0)
			;
		CHECK_IS(ut_sem_wait(&sem), -ECANCELED);
		break;
	case 3:
		CHECK_IS(ut_barrier_wait(&barrier), -ECANCELED);
		break;
	case 4:
		CHECK_IS(ut_chan_recv(there, &arg), -ECANCELED);
		break;
	default:
		while (!ut_is_cancelled())
			ut_yield();
	}
	CHECK_IS(ut_sleep_ns(1), -ECANCELED);
	return NULL;
}

static void test_cancel(void)
{
	ut_id ids[NR];

	CHECK_IS(ut_chan_create(&there, 8, 0), 0);
	for (intptr_t i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, wait_for_ever, (void *)i), 0);
	for (int i = 0; i < 20; i++)
		ut_yield();
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_cancel(ids[i]), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(ut_cancel(ids[0]), -ESRCH);
	CHECK_IS(ut_chan_destroy(there), 0);
}

static void test_timeouts(void)
{
	uint64_t until_ns = ut_now_ns() + 2000000;

	while (ut_sem_trywait(&sem) == 0)
		;
	CHECK_IS(ut_sem_wait_until(&sem, until_ns), -ETIMEDOUT);
	CHECK(ut_now_ns() >= until_ns);
	CHECK_IS(ut_sem_post(&sem), 0);
	CHECK_IS(ut_sem_wait_until(&sem, until_ns), 0);
	ut_mutex_lock(&mutex);
	CHECK_IS(ut_cond_wait_until(&cond, &mutex, ut_now_ns() + 1000000), -ETIMEDOUT);
	CHECK_IS(ut_mutex_unlock(&mutex), 0);
}

static void *die_with_mutex(void *arg)
{
	CHECK_IS(ut_mutex_lock(&mutex), 0);
	return arg;
}

static void test_errors(void)
{
	ut_id id;

	CHECK_IS(ut_mutex_unlock(&mutex), -EPERM);
	CHECK_IS(ut_mutex_lock(&mutex), 0);
	CHECK_IS(ut_mutex_lock(&mutex), -EDEADLK);
	CHECK_IS(ut_mutex_trylock(&mutex), -EBUSY);
	CHECK_IS(ut_mutex_unlock(&mutex), 0);
	CHECK_IS(ut_cond_wait(&cond, &mutex), -EPERM);
	ut_preempt_disable();
	CHECK_IS(ut_sleep_ns(1000), -EPERM);
	CHECK_IS(ut_mutex_lock(&mutex), 0);
	ut_preempt_enable();
	CHECK_IS(ut_mutex_unlock(&mutex), 0);
	CHECK_IS(ut_create(&id, NULL, die_with_mutex, NULL), 0);
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_IS(ut_mutex_lock(&mutex), -EOWNERDEAD);
	CHECK_IS(ut_mutex_unlock(&mutex), 0);
}

static void *count_end(void *arg)
{
	ut_key *key = arg;

	CHECK(!ut_getspecific(*key));
	CHECK_IS(ut_setspecific(*key, &shared), 0);
	ut_yield();
	CHECK(ut_getspecific(*key) == &shared);
	return NULL;
}

static void end_slot(void *value)
{
	__atomic_add_fetch((long *)value, 1, __ATOMIC_SEQ_CST);
}

static void test_slots(void)
{
	ut_id ids[NR];
	ut_key key, again;

	shared = 0;
	CHECK_IS(ut_key_create(&key, end_slot), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, count_end, &key), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(shared, NR);
	CHECK_IS(ut_setspecific(key, &shared), 0);
	CHECK_IS(ut_key_delete(key), 0);
	CHECK_IS(ut_key_delete(key), -EINVAL);
	CHECK_IS(ut_setspecific(key, &shared), -EINVAL);
	CHECK(!ut_getspecific(key));
	/* The same place, and not what was left there. */
	CHECK_IS(ut_key_create(&again, end_slot), 0);
	CHECK_IS(again, key);
	CHECK(!ut_getspecific(again));
	CHECK_IS(ut_key_delete(again), 0);
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);

	check_init(&config);
	run_all(add);
	CHECK_IS(shared, NR * ROUNDS);
	run_all(take_turns);
	CHECK_IS(turn, NR * (ROUNDS / 10));
	test_signal();
	run_all(enter);
	shared = 0;
	run_all(march);
	CHECK_IS(shared, ROUNDS);
	test_channels(0);
	test_channels(1);
	test_channels(16);
	test_cancel();
	test_timeouts();
	test_errors();
	test_slots();
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
