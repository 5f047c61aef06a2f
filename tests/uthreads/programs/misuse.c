/* SPDX-License-Identifier: MIT */
/*
 * misuse.c - what a program must not do is refused, and the others do not suffer.
 *
 *	misuse POLICY CPUS calls|end|twice|first|config|attributes
 */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define NR 4
#define SHORT_NS 1000000
#define LONG_NS 60000000000ULL

static ut_mutex mutex;
static ut_cond cond;
static ut_sem none;
static ut_barrier both = UT_BARRIER_INIT(2);
static ut_chan *channel;
static volatile int turn;

static void *hold_mutex(void *arg)
{
	CHECK_IS(ut_mutex_lock(&mutex), 0);
	CHECK_IS(ut_sem_wait(&none), 0);
	CHECK_IS(ut_mutex_unlock(&mutex), 0);
	return arg;
}

/* A call that would block says so, and leaves everything as it was. */
static void test_calls(void)
{
	char byte;
	ut_mutex own = UT_MUTEX_INIT;
	ut_id id;

	CHECK_IS(ut_chan_create(&channel, 1, 0), 0);
	CHECK_IS(ut_create(&id, NULL, hold_mutex, NULL), 0);
	while (!__atomic_load_n(&none.waiters_.first, __ATOMIC_SEQ_CST))
		CHECK_IS(ut_sleep_ns(SHORT_NS), 0);
	CHECK_IS(ut_mutex_lock(&own), 0);
	ut_preempt_disable();
	CHECK_IS(ut_yield(), -EPERM);
	CHECK_IS(ut_sleep_ns(1), -EPERM);
	CHECK_IS(ut_join(id, NULL), -EPERM);
	CHECK_IS(ut_mutex_lock(&mutex), -EPERM);
	CHECK_IS(ut_cond_wait(&cond, &own), -EPERM);
	CHECK_IS(ut_sem_wait(&none), -EPERM);
	CHECK_IS(ut_barrier_wait(&both), -EPERM);
	CHECK_IS(ut_chan_send(channel, &byte), -EPERM);
	CHECK_IS(ut_chan_recv(channel, &byte), -EPERM);
	CHECK_IS(ut_read(0, &byte, 1), -EPERM);
	CHECK_IS(ut_outside((int (*)(void *))abort, NULL), -EPERM);
	CHECK_IS(ut_exit(), -EPERM);
	ut_preempt_enable();
	CHECK_IS(ut_mutex_unlock(&own), 0);
	CHECK_IS(ut_sem_post(&none), 0);
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_IS(ut_chan_destroy(channel), 0);
}

/* Threads that never give way take turns only if they can be preempted. */
static void *take_turns(void *arg)
{
	int own = (int)(intptr_t)arg;

	for (int i = 0; i < 5; i++) {
		while (turn % NR != own)
			;
		turn++;
	}
	return arg;
}

static void see_turns(void)
{
	ut_id ids[NR];

	turn = 0;
	for (intptr_t i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, take_turns, (void *)i), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
}

static void *disable_and_end(void *arg)
{
	ut_preempt_disable();
	ut_preempt_disable();
	if (arg)
		ut_thread_exit(NULL);
	return NULL;
}

static void *enable_too_often(void *arg)
{
	ut_preempt_enable();
	ut_preempt_enable();
	CHECK_IS(ut_yield(), 0);
	return arg;
}

static void test_ends(ut_fn fn)
{
	ut_id id;

	/* On every kernel thread. */
	for (int i = 0; i < 8; i++) {
		CHECK_IS(ut_create(&id, NULL, fn, i % 2 ? &id : NULL), 0);
		CHECK_IS(ut_join(id, NULL), 0);
	}
	see_turns();
}

/* The first thread ends before another one, and its mutex is not lost. */
static void *outlive(void *arg)
{
	CHECK_IS(ut_sleep_ns(20 * SHORT_NS), 0);
	CHECK_IS(ut_mutex_lock(&mutex), -EOWNERDEAD);
	CHECK_IS(ut_mutex_unlock(&mutex), 0);
	puts("good");
	fflush(stdout);
	return arg;
}

static void refuse(const struct ut_config *config, const char *why)
{
	CHECK_IS(ut_init(config), -EINVAL);
	CHECK(strstr(ut_error_text(), why));
	CHECK_IS(ut_self(), 0);
}

static void test_config(const struct ut_config *good)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGQUIT };
	const struct ut_config *config = good;
	struct ut_config bad;

	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		bad = *good;
		bad.preempt_signal = signals[i];
		refuse(&bad, "preempt_signal");
	}
	bad.preempt_signal = SIGKILL;
	refuse(&bad, "signal 9");
	bad = *good;
	bad.flags = 0x60;
	refuse(&bad, "0x60");
	bad = *good;
	bad.config_bytes--;
	refuse(&bad, "config_bytes");
	bad = *good;
	bad.nr_cpus = 1 << 20;
	refuse(&bad, "nr_cpus");
	bad = *good;
	bad.stack_bytes = 16384;
	refuse(&bad, "stack_bytes");
	bad = *good;
	bad.tick_ns = 1;
	refuse(&bad, "tick_ns");
	bad = *good;
	bad.threads_max = ~0U;
	refuse(&bad, "threads_max");
	bad = *good;
	bad.policy = "nowhere.so";
	CHECK_IS(ut_init(&bad), -ENOENT);
	CHECK(strstr(ut_error_text(), "nowhere.so"));
	bad = *good;
	bad.sets = (const char *const[]){ "colour=red", NULL };
	refuse(&bad, "colour");
	bad = *good;
	bad.records = "/nowhere/records";
	CHECK_IS(ut_init(&bad), -ENOENT);
	bad.records = "/dev/full";
	CHECK_IS(ut_init(&bad), -EIO);
	CHECK(strstr(ut_error_text(), "/dev/full"));
	/* Nothing of all this is left. */
	check_init(config);
	see_turns();
}

static void *wait_here(void *arg)
{
	CHECK_IS(ut_sem_wait(&none), 0);
	return arg;
}

/* What was given can be asked for. */
static void test_attributes(int nr_cpus)
{
	uint64_t last = 1ULL << (nr_cpus - 1);
	struct ut_attr attr = UT_ATTR_INIT, found;
	ut_id id;

	attr.given = UT_GIVES_PRIORITY | UT_GIVES_TICKETS | UT_GIVES_CREDITS | UT_GIVES_CAP |
		     UT_GIVES_GROUP | UT_GIVES_WEIGHT | UT_GIVES_DEADLINE | UT_GIVES_BURST;
	attr.priority = -3;
	attr.tickets = 7;
	attr.credits = 11;
	attr.cap_percent = 13;
	attr.group = 17;
	attr.weight = 19;
	attr.deadline_ns = 23;
	attr.burst_ns = 29;
	attr.affinity = &last;
	attr.affinity_words = 1;
	attr.stack_bytes = 100000;
	attr.name = "a name that is too long";
	CHECK_IS(ut_create(&id, &attr, wait_here, NULL), 0);
	CHECK_IS(ut_getattr(id, &found), 0);
	CHECK_IS(found.given, attr.given);
	CHECK_IS(found.priority, -3);
	CHECK_IS(found.tickets, 7);
	CHECK_IS(found.credits, 11);
	CHECK_IS(found.cap_percent, 13);
	CHECK_IS(found.group, 17);
	CHECK_IS(found.weight, 19);
	CHECK_IS(found.deadline_ns, 23);
	CHECK_IS(found.burst_ns, 29);
	CHECK(found.affinity && found.affinity[0] == last);
	CHECK_IS(found.affinity_words, 1);
	CHECK(found.stack_bytes >= 100000);
	CHECK(!strcmp(found.name, "a name that is "));
	CHECK(!found.is_detached);
	/* Only what is given changes. */
	attr.given = UT_GIVES_TICKETS;
	attr.tickets = 8;
	attr.priority = 9;
	attr.affinity = NULL;
	CHECK_IS(ut_setattr(id, &attr), 0);
	CHECK_IS(ut_getattr(id, &found), 0);
	CHECK_IS(found.tickets, 8);
	CHECK_IS(found.priority, -3);
	CHECK(found.affinity && found.affinity[0] == last);
	CHECK_IS(ut_sem_post(&none), 0);
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_IS(ut_getattr(id, &found), -ESRCH);
	/* Another thread in the same place has nothing of it. */
	CHECK_IS(ut_create(&id, NULL, wait_here, NULL), 0);
	CHECK_IS(ut_getattr(id, &found), 0);
	CHECK_IS(found.given, 0);
	CHECK(!found.affinity && !strcmp(found.name, "thread"));
	CHECK_IS(ut_detach(id), 0);
	CHECK_IS(ut_getattr(id, &found), 0);
	CHECK(found.is_detached);
	CHECK_IS(ut_sem_post(&none), 0);
}

/* Many sizes of stacks: there is a pool for each. */
static void test_stacks(void)
{
	struct ut_attr attr = UT_ATTR_INIT;
	ut_id id;

	for (int i = 0; i < 200; i++) {
		attr.stack_bytes = 65536 + (size_t)i * 20000;
		CHECK_IS(ut_create(&id, &attr, enable_too_often, NULL), 0);
		CHECK_IS(ut_join(id, NULL), 0);
	}
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	const char *what = argc > 3 ? argv[3] : "";
	ut_id id;

	if (!strcmp(what, "config")) {
		test_config(&config);
	} else {
		check_init(&config);
	}
	if (!strcmp(what, "calls"))
		test_calls();
	if (!strcmp(what, "end"))
		test_ends(disable_and_end);
	if (!strcmp(what, "twice"))
		test_ends(enable_too_often);
	if (!strcmp(what, "attributes")) {
		test_attributes((int)config.nr_cpus);
		test_stacks();
	}
	if (!strcmp(what, "first")) {
		CHECK_IS(ut_mutex_lock(&mutex), 0);
		CHECK_IS(ut_create(&id, NULL, outlive, NULL), 0);
		ut_thread_exit(NULL);
	}
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
