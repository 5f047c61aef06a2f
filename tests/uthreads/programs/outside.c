/* SPDX-License-Identifier: MIT */
/*
 * outside.c - kernel threads outside and signal handlers wake threads, by a descriptor.
 *
 *	outside POLICY CPUS
 */
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#define NR 200

static int there, back, alarms;

static void tell(int fd)
{
	uint64_t one = 1;

	CHECK_IS(write(fd, &one, sizeof(one)), sizeof(one));
}

/* A thread of the machine is told, and tells; every one is waited for. */
static void *play(void *arg)
{
	uint64_t nr;

	for (int i = 0; i < NR; i++) {
		tell(there);
		CHECK_IS(read(back, &nr, sizeof(nr)), sizeof(nr));
		CHECK_IS(nr, 1);
	}
	return arg;
}

static void handle(int signal)
{
	(void)signal;
	tell(alarms);
}

static void *count_alarms(void *arg)
{
	uint64_t nr, sum;

	for (sum = 0; sum < 20; sum += nr)
		CHECK_IS(ut_read(alarms, &nr, sizeof(nr)), sizeof(nr));
	return arg;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	struct sigaction act = { .sa_handler = handle, .sa_flags = SA_RESTART };
	struct itimerval each_ms = { { 0, 1000 }, { 0, 1000 } }, off = { { 0, 0 }, { 0, 0 } };
	pthread_t outside;
	uint64_t nr;
	ut_id id;

	there = eventfd(0, 0);
	back = eventfd(0, 0);
	alarms = eventfd(0, 0);
	check_init(&config);
	CHECK_IS(ut_create(&id, NULL, count_alarms, NULL), 0);
	CHECK_IS(sigaction(SIGALRM, &act, NULL), 0);
	CHECK_IS(setitimer(ITIMER_REAL, &each_ms, NULL), 0);
	CHECK_IS(pthread_create(&outside, NULL, play, NULL), 0);
	for (int i = 0; i < NR; i++) {
		CHECK_IS(ut_read(there, &nr, sizeof(nr)), sizeof(nr));
		CHECK_IS(nr, 1);
		tell(back);
	}
	CHECK_IS(pthread_join(outside, NULL), 0);
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_IS(setitimer(ITIMER_REAL, &off, NULL), 0);
	CHECK_IS(ut_exit(), 0);
	return 0;
}
