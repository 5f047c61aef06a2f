/* SPDX-License-Identifier: MIT */
/*
 * stress.c - random calls of the library until so many switches are done.
 *
 *	stress POLICY CPUS SWITCHES SEED [NAME=VALUE...]
 *
 * Workers live for some hundred random operations each; the first thread joins
 * them and makes new ones. What every operation leaves behind is checked: the two
 * halves of what a mutex guards, answers of servers, how many are inside, what a
 * child returned. Whoever waits is woken by somebody who lives, so a wake-up that
 * is lost ends in a wait for ever: either the library sees that nothing can happen
 * any more, or the watch below sees that nothing happens.
 */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#define NR_WORKERS 24
#define NR_SERVERS 3
#define NR_GUARDED 6
#define NR_SEATS 3
#define CHILDREN_MAX 4
#define LIFE_OPS 30
#define WATCH_SECONDS 60

/* Both halves are always equal outside the mutex. */
static struct guarded {
	ut_mutex mutex;
	long a, b;
} guarded[NR_GUARDED] = {
	[0] = { .mutex = UT_MUTEX_INIT_INHERIT(UT_MUTEX_INHERIT_SMALLEST) },
	[1] = { .mutex = UT_MUTEX_INIT_INHERIT(UT_MUTEX_INHERIT_LARGEST) },
};

struct request {
	ut_chan *answer;
	uint64_t value;
};

static ut_chan *requests;
static ut_sem seats = UT_SEM_INIT(NR_SEATS);
static ut_sem coins = UT_SEM_INIT(0);
static ut_key key;
static int nr_cpus, nr_seated;
static long nr_switches, nr_ops, nr_locked, nr_detached, nr_detached_done;
static long nr_coins, nr_coins_taken, nr_slots_made, nr_slots_ended;
static unsigned long long first_seed;

static void add(long *to, long value)
{
	__atomic_add_fetch(to, value, __ATOMIC_SEQ_CST);
}

static long get(long *from)
{
	return __atomic_load_n(from, __ATOMIC_SEQ_CST);
}

/* A worker, or a child of one: its numbers are its own. */
struct life {
	unsigned long long random;
	ut_chan *answer;
};

/* xorshift64* (Vigna 2016). Return: 0 to @below - 1. */
static uint32_t draw(struct life *life, uint32_t below)
{
	unsigned long long x = life->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	life->random = x;
	return (uint32_t)((x * 0x2545f4914f6cdd1dULL >> 32) % below);
}

static void join(ut_id id, void *wanted)
{
	struct ut_stats stats;
	void *result = NULL;

	CHECK_IS(ut_join_stats(id, &result, &stats), 0);
	CHECK(result == wanted);
	add(&nr_switches, (long)(stats.voluntary_switches + stats.involuntary_switches));
}

/* ---- operations ----------------------------------------------------------- */

static void yields(struct life *life)
{
	for (uint32_t nr = draw(life, 1000); nr; nr--)
		CHECK_IS(ut_yield(), 0);
}

/* In the program's own code: a place where it may be stopped. */
static void compute(struct life *life)
{
	volatile uint32_t sum = 0;

	for (uint32_t i = draw(life, 20000); i; i--)
		sum += i;
	ut_preempt_disable();
	ut_preempt_enable();
}

static void lock(struct life *life)
{
	struct guarded *g = &guarded[draw(life, NR_GUARDED)];
	int err = draw(life, 4) ? ut_mutex_lock(&g->mutex) : ut_mutex_trylock(&g->mutex);

	if (err) {
		CHECK_IS(err, -EBUSY);
		return;
	}
	CHECK_IS(g->a, g->b);
	g->a++;
	if (!draw(life, 4))
		ut_yield();
	else if (!draw(life, 50))
		ut_sleep_ns(draw(life, 20000));
	g->b++;
	CHECK_IS(ut_mutex_unlock(&g->mutex), 0);
	add(&nr_locked, 1);
}

static void sit(struct life *life)
{
	CHECK_IS(ut_sem_wait(&seats), 0);
	CHECK(__atomic_add_fetch(&nr_seated, 1, __ATOMIC_SEQ_CST) <= NR_SEATS);
	if (draw(life, 2))
		ut_yield();
	__atomic_sub_fetch(&nr_seated, 1, __ATOMIC_SEQ_CST);
	CHECK_IS(ut_sem_post(&seats), 0);
}

static void ask(struct life *life)
{
	struct request request = { life->answer, draw(life, 1U << 30) };
	uint64_t answer;

	CHECK_IS(ut_chan_send(requests, &request), 0);
	CHECK_IS(ut_chan_recv(life->answer, &answer), 0);
	CHECK_IS(answer, 3 * request.value + 1);
}

static void doze(struct life *life)
{
	CHECK_IS(ut_sleep_ns(draw(life, 4) ? draw(life, 30000) : 0), 0);
}

/* A time that passes and a post that comes are after the same thread. */
static void race_for_coin(struct life *life)
{
	int err;

	if (draw(life, 2)) {
		add(&nr_coins, 1);
		CHECK_IS(ut_sem_post(&coins), 0);
		return;
	}
	err = ut_sem_wait_until(&coins, ut_now_ns() + draw(life, 20000));
	CHECK(!err || err == -ETIMEDOUT);
	if (!err)
		add(&nr_coins_taken, 1);
}

static void move(struct life *life)
{
	uint64_t mask = 1 + draw(life, (1U << nr_cpus) - 1);
	struct ut_attr attr = UT_ATTR_INIT;

	attr.given = UT_GIVES_PRIORITY | UT_GIVES_WEIGHT;
	attr.priority = (int32_t)draw(life, 10);
	attr.weight = 1 + draw(life, 10000);
	attr.affinity = &mask;
	attr.affinity_words = 1;
	CHECK_IS(ut_setattr(ut_self(), &attr), 0);
}

/* ---- with children ---------------------------------------------------------- */

static void start(ut_id *id, ut_fn fn, void *arg)
{
	CHECK_IS(ut_create(id, NULL, fn, arg), 0);
}

struct flag {
	ut_mutex mutex;
	ut_cond cond;
	bool is_up;
};

static void *wait_for_flag(void *arg)
{
	struct flag *flag = arg;

	CHECK_IS(ut_mutex_lock(&flag->mutex), 0);
	while (!flag->is_up)
		CHECK_IS(ut_cond_wait(&flag->cond, &flag->mutex), 0);
	CHECK_IS(ut_mutex_unlock(&flag->mutex), 0);
	return arg;
}

static void raise_flag(struct life *life)
{
	struct flag flag = { .is_up = false };
	uint32_t nr = 1 + draw(life, CHILDREN_MAX);
	ut_id ids[CHILDREN_MAX];

	for (uint32_t i = 0; i < nr; i++)
		start(&ids[i], wait_for_flag, &flag);
	for (uint32_t i = draw(life, 4); i; i--)
		ut_yield();
	CHECK_IS(ut_mutex_lock(&flag.mutex), 0);
	flag.is_up = true;
	CHECK_IS(ut_cond_broadcast(&flag.cond), 0);
	CHECK_IS(ut_mutex_unlock(&flag.mutex), 0);
	for (uint32_t i = 0; i < nr; i++)
		join(ids[i], &flag);
}

struct parade {
	ut_barrier barrier;
	long nr_passed, nr_last;
};

static void *march(void *arg)
{
	struct parade *parade = arg;

	for (long i = 1; i <= 5; i++) {
		add(&parade->nr_passed, 1);
		int last = ut_barrier_wait(&parade->barrier);

		CHECK(last == 0 || last == 1);
		CHECK(get(&parade->nr_passed) >= i * (long)parade->barrier.nr_parties_);
		add(&parade->nr_last, last);
	}
	return arg;
}

static void hold_parade(struct life *life)
{
	uint32_t nr = 1 + draw(life, CHILDREN_MAX);
	struct parade parade = { UT_BARRIER_INIT(nr), 0, 0 };
	ut_id ids[CHILDREN_MAX];

	for (uint32_t i = 0; i < nr; i++)
		start(&ids[i], march, &parade);
	for (uint32_t i = 0; i < nr; i++)
		join(ids[i], &parade);
	CHECK_IS(parade.nr_last, 5);
}

/* Waits in one of the ways that can be cancelled, until it is. */
struct victim {
	uint32_t how;
	ut_sem never;
	struct flag flag;
	ut_barrier barrier;
	ut_chan *channel;
};

static void *sleep_on(void *arg)
{
	CHECK_IS(ut_sleep_ns(~0ULL), -ECANCELED);
	return arg;
}

/* Who is asked to end cannot wait for anybody, not even for whom it made. */
static int join_for_ever(void)
{
	ut_id id;
	int err;

	start(&id, sleep_on, NULL);
	err = ut_join(id, NULL);
	CHECK_IS(ut_cancel(id), 0);
	CHECK_IS(ut_detach(id), 0);
	return err;
}

static int wait_somehow(struct victim *v)
{
	uint64_t message = 0;
	int err;

	switch (v->how) {
	case 0:
		return ut_sleep_ns(~0ULL);
	case 1:
		return ut_sem_wait(&v->never);
	case 2:
		CHECK_IS(ut_mutex_lock(&v->flag.mutex), 0);
		err = ut_cond_wait(&v->flag.cond, &v->flag.mutex);
		CHECK_IS(ut_mutex_unlock(&v->flag.mutex), 0);
		return err;
	case 3:
		return ut_barrier_wait(&v->barrier);
	case 4:
		return ut_chan_recv(v->channel, &message);
	case 5:
		return ut_chan_send(v->channel, &message);
	default:
		return join_for_ever();
	}
}

static void *be_cancelled(void *arg)
{
	struct victim *v = arg;

	CHECK_IS(wait_somehow(v), -ECANCELED);
	CHECK(ut_is_cancelled());
	CHECK_IS(ut_sleep_ns(1), -ECANCELED);
	return arg;
}

static void cancel(struct life *life)
{
	struct victim v = { .how = draw(life, 7),
			    .barrier = UT_BARRIER_INIT(2),
			    .channel = life->answer };
	ut_id id;

	start(&id, be_cancelled, &v);
	for (uint32_t i = draw(life, 4); i; i--)
		ut_yield();
	CHECK_IS(ut_cancel(id), 0);
	join(id, &v);
}

static void *count_detached(void *arg)
{
	CHECK_IS(ut_setspecific(key, &nr_slots_ended), 0);
	add(&nr_slots_made, 1);
	if (arg)
		ut_yield();
	CHECK(ut_getspecific(key) == &nr_slots_ended);
	add(&nr_detached_done, 1);
	return arg;
}

static void end_slot(void *value)
{
	add(value, 1);
}

static void detach(struct life *life)
{
	struct ut_attr attr = UT_ATTR_INIT;
	ut_id id;

	attr.is_detached = draw(life, 2);
	CHECK_IS(ut_create(&id, &attr, count_detached, draw(life, 2) ? &attr : NULL), 0);
	if (!attr.is_detached)
		CHECK_IS(ut_detach(id), 0);
	add(&nr_detached, 1);
}

/* ---- who does them ------------------------------------------------------------ */

static void (*const operations[])(struct life *) = {
	yields, yields,	    yields,	 yields, yields, yields, compute,
	lock,	lock,	    lock,	 sit,	 ask,	 doze,	 race_for_coin,
	move,	raise_flag, hold_parade, cancel, detach,
};
#define NR_OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static void *serve(void *arg)
{
	struct request request;

	while (ut_chan_recv(requests, &request) == 0) {
		request.value = 3 * request.value + 1;
		CHECK_IS(ut_chan_send(request.answer, &request.value), 0);
	}
	return arg;
}

static void *work(void *arg)
{
	struct life life = { (uintptr_t)arg * 0x9e3779b97f4a7c15ULL + first_seed, NULL };

	CHECK_IS(ut_chan_create(&life.answer, sizeof(uint64_t), 0), 0);
	for (int i = 0; i < LIFE_OPS; i++) {
		operations[draw(&life, NR_OPERATIONS)](&life);
		add(&nr_ops, 1);
	}
	CHECK_IS(ut_chan_destroy(life.answer), 0);
	return arg;
}

/* A kernel thread outside: does anything happen at all? */
static void *watch(void *arg)
{
	long seen = -1;

	for (;;) {
		sleep(WATCH_SECONDS);
		if (get(&nr_ops) == seen) {
			fprintf(stderr, "nothing has happened for %d s\n", WATCH_SECONDS);
			kill(getpid(), SIGQUIT);
			sleep(2);
			_exit(3);
		}
		seen = get(&nr_ops);
	}
	return arg;
}

static void start_watch(void)
{
	sigset_t all, old;
	pthread_t id;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	CHECK_IS(pthread_create(&id, NULL, watch, NULL), 0);
	CHECK_IS(pthread_detach(id), 0);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void run(long switches)
{
	ut_id workers[NR_WORKERS], servers[NR_SERVERS];
	uintptr_t nr = 0;
	long sum = 0;

	CHECK_IS(ut_chan_create(&requests, sizeof(struct request), 2), 0);
	CHECK_IS(ut_key_create(&key, end_slot), 0);
	for (int i = 0; i < NR_SERVERS; i++)
		start(&servers[i], serve, NULL);
	for (int i = 0; i < NR_WORKERS; i++)
		start(&workers[i], work, (void *)++nr);
	for (uintptr_t i = 0; i < nr; i++) {
		join(workers[i % NR_WORKERS], (void *)(i + 1));
		if (get(&nr_switches) < switches)
			start(&workers[i % NR_WORKERS], work, (void *)++nr);
	}
	CHECK_IS(ut_chan_close(requests), 0);
	for (int i = 0; i < NR_SERVERS; i++)
		join(servers[i], NULL);
	CHECK_IS(ut_chan_destroy(requests), 0);
	for (int i = 0; i < NR_GUARDED; i++) {
		CHECK_IS(guarded[i].a, guarded[i].b);
		sum += guarded[i].a;
	}
	CHECK_IS(sum, nr_locked);
	CHECK_IS(coins.count_, nr_coins - nr_coins_taken);
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);

	CHECK(argc > 4);
	first_seed = strtoull(argv[4], NULL, 0) + 1;
	config.seed = first_seed;
	config.sets = (const char *const *)&argv[5];
	nr_cpus = (int)config.nr_cpus;
	start_watch();
	check_init(&config);
	run(atol(argv[3]));
	CHECK_IS(ut_exit(), 0);
	CHECK_IS(nr_detached_done, nr_detached);
	CHECK_IS(nr_slots_ended, nr_slots_made);
	printf("%ld switches, %ld operations, %ld threads detached\n", nr_switches, nr_ops,
	       nr_detached);
	return 0;
}
