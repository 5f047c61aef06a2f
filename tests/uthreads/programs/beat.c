/* SPDX-License-Identifier: MIT */
/*
 * beat.c - while a signal is pending, the kernel drops a kick: one signal of a number.
 *
 * Here the pending one is the beat, the timer's that sees whether the policy returns.
 * The thread computes on with an endless slice, so the kick would be its only end.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LATE_US 20000

static void *beat;
static bool has_beat, must_end;

/* In place of the C library's function: notes which timer is the beat. */
int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
	typeof(timer_create) *real = (typeof(real))dlsym(RTLD_NEXT, "timer_create");

	if (clock == CLOCK_THREAD_CPUTIME_ID)
		beat = event->sigev_value.sival_ptr;
	return real(clock, event, timer);
}

/* The beat is due, and pending while the signal is blocked. */
static void be_beaten(void)
{
	siginfo_t info = { .si_code = SI_TIMER };
	sigset_t pending;

	info.si_value.sival_ptr = beat;
	CHECK_IS(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGURG, &info), 0);
	CHECK_IS(sigpending(&pending), 0);
	CHECK(sigismember(&pending, SIGURG));
}

static void *compute(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	CHECK_IS(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	be_beaten();
	__atomic_store_n(&has_beat, true, __ATOMIC_RELEASE);
	/* Meanwhile the CPU is kicked: the kernel drops that signal. */
	usleep(LATE_US);
	CHECK_IS(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	while (!__atomic_load_n(&must_end, __ATOMIC_RELAXED))
		;
	return arg;
}

/* Outside the machine: when it returns, its caller is woken and preempts. */
static int wait_for_beat(void *arg)
{
	while (!__atomic_load_n(&has_beat, __ATOMIC_ACQUIRE))
		usleep(100);
	return arg != NULL;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	ut_id id;

	check_init(&config);
	CHECK_IS(ut_create(&id, NULL, compute, NULL), 0);
	CHECK_IS(ut_outside(wait_for_beat, NULL), 0);
	__atomic_store_n(&must_end, true, __ATOMIC_RELAXED);
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_IS(ut_exit(), 0);
	return 0;
}
