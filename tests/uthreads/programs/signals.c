/* SPDX-License-Identifier: MIT */
/*
 * signals.c - a program with signals of its own.
 *
 * Each thread sends itself a signal and waits, in the handler, until another thread
 * has had a turn: on one kernel thread, until it was stopped in the handler. What the
 * handler has blocked must not be blocked for others meanwhile, nor after it. And the
 * signal by which threads are preempted is the program's again after the end.
 */
#include "check.h"

#include <signal.h>
#include <stdbool.h>

#define NR 4
#define NR_ALARMS 5

static long steps[NR];
static int nr_urgent, nr_done;

static bool is_blocked(int signal)
{
	sigset_t mask;

	CHECK_IS(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	return sigismember(&mask, signal);
}

static long all_steps(void)
{
	long sum = 0;

	for (int i = 0; i < NR; i++)
		sum += __atomic_load_n(&steps[i], __ATOMIC_SEQ_CST);
	return sum;
}

static void on_alarm(int signal)
{
	long until = all_steps() + NR;

	(void)signal;
	CHECK(is_blocked(SIGALRM));
	while (all_steps() < until)
		;
	CHECK(is_blocked(SIGALRM));
}

static void on_urgent(int signal)
{
	(void)signal;
	nr_urgent++;
}

static void *compute(void *arg)
{
	long *step = arg;

	for (int i = 0; i < NR_ALARMS; i++) {
		for (int j = 0; j < 3 * NR; j++) {
			CHECK(!is_blocked(SIGALRM));
			CHECK(!is_blocked(SIGUSR2));
			__atomic_add_fetch(step, 1, __ATOMIC_SEQ_CST);
		}
		CHECK_IS(raise(SIGALRM), 0);
	}
	/* The others still wait for somebody's steps. */
	__atomic_add_fetch(&nr_done, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&nr_done, __ATOMIC_SEQ_CST) < NR) {
		CHECK(!is_blocked(SIGALRM));
		__atomic_add_fetch(step, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction alarm_action = { .sa_handler = on_alarm,
					  .sa_flags = SA_RESTART };
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
		CHECK_IS(ut_create(&ids[i], NULL, compute, &steps[i]), 0);
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
