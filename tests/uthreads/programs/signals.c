/* SPDX-License-Identifier: MIT */
/*
 * signals.c - a program with signals of its own.
 *
 * Each thread sends itself a signal and waits, in the handler, until another thread
 * has had a turn: on one kernel thread, until it was stopped in the handler. What the
 * handler has blocked must not be blocked for others meanwhile, nor after it. That holds
 * if its signal comes together with the one that preempts, whose handler has then begun,
 * and done nothing yet. And that one is the program's again after the end.
 */
#include "check.h"

#include <signal.h>
#include <stdbool.h>
#include <time.h>

#define NR 4
#define NR_ALARMS 5

static const void *last; /* an address on the stack of who ran; atomic */
static int nr_urgent, nr_done;

static bool is_blocked(int signal)
{
	sigset_t mask;

	CHECK_IS(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	return sigismember(&mask, signal);
}

static void note(const void *self)
{
	__atomic_store_n(&last, self, __ATOMIC_SEQ_CST);
}

static void on_alarm(int signal)
{
	CHECK(is_blocked(SIGALRM));
	note(&signal);
	while (__atomic_load_n(&last, __ATOMIC_SEQ_CST) == &signal)
		;
	CHECK(is_blocked(SIGALRM));
}

static void on_urgent(int signal)
{
	(void)signal;
	nr_urgent++;
}

static long long now_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000000LL + at.tv_nsec;
}

/* Both signals at once; only one of them if nobody else wants this CPU. */
static void collide(void)
{
	long long until_ns = now_ns() + 20000000;
	sigset_t both, pending;

	sigemptyset(&both);
	sigaddset(&both, SIGALRM);
	sigaddset(&both, SIGUSR2);
	CHECK_IS(pthread_sigmask(SIG_BLOCK, &both, NULL), 0);
	CHECK_IS(raise(SIGALRM), 0);
	do {
		CHECK_IS(sigpending(&pending), 0);
	} while (!sigismember(&pending, SIGUSR2) && now_ns() < until_ns);
	CHECK_IS(pthread_sigmask(SIG_UNBLOCK, &both, NULL), 0);
}

static void *compute(void *arg)
{
	for (int i = 0; i < NR_ALARMS; i++) {
		for (int j = 0; j < 3 * NR; j++) {
			CHECK(!is_blocked(SIGALRM));
			CHECK(!is_blocked(SIGUSR2));
			note(&arg);
		}
		if (i % 2)
			collide();
		else
			CHECK_IS(raise(SIGALRM), 0);
	}
	/* The others still wait for somebody else to run. */
	__atomic_add_fetch(&nr_done, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&nr_done, __ATOMIC_SEQ_CST) < NR) {
		CHECK(!is_blocked(SIGALRM));
		note(&arg);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction alarm_action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct sigaction urgent_action = { .sa_handler = on_urgent };
	struct ut_config config = check_config(argc, argv);
	const char *sets[] = { "slice_ns=300000", NULL };
	ut_id ids[NR];

	CHECK_IS(sigaction(SIGALRM, &alarm_action, NULL), 0);
	CHECK_IS(sigaction(SIGURG, &urgent_action, NULL), 0);
	CHECK_IS(sigaction(SIGUSR2, &urgent_action, NULL), 0);
	config.sets = sets;
	config.preempt_signal = SIGKILL;
	CHECK_IS(ut_init(&config), -22);
	CHECK(strstr(ut_error_text(), "signal 9"));
	config.preempt_signal = SIGUSR2;
	check_init(&config);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, compute, NULL), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	raise(SIGURG);
	CHECK_IS(nr_urgent, 1);
	CHECK_IS(ut_exit(), 0);
	raise(SIGUSR2);
	CHECK_IS(nr_urgent, 2);
	puts("good");
	return 0;
}
