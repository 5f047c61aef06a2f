/* SPDX-License-Identifier: MIT */
/*
 * pthreads.c - the operations of ../uthreads.c with the kernel's own threads.
 *
 *	pthreads WHAT OPS: prints {"ns": CPU time of the process per operation}
 *
 * But for fan_out everything is on one CPU, as one kernel thread is.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS_MAX 1000
#define FAN_BATCH 1000

static long nr_ops, each;
static sem_t there, back;
static pthread_t ids[THREADS_MAX];

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static void start(pthread_t *id, void *(*fn)(void *))
{
	int err = pthread_create(id, NULL, fn, NULL);

	if (err) {
		fprintf(stderr, "pthread_create: %s\n", strerror(err));
		exit(1);
	}
}

static void *yielder(void *arg)
{
	for (long i = 0; i < each; i++)
		sched_yield();
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

static void *echo(void *arg)
{
	for (long i = 0; i < nr_ops; i++) {
		sem_wait(&there);
		sem_post(&back);
	}
	return arg;
}

static void *short_task(void *arg)
{
	uint64_t x = 1;

	for (int i = 0; i < 1000; i++) {
		x = x * 3 + 1;
		__asm__ volatile("" : "+r"(x));
	}
	return arg;
}

static void yields(int nr_threads)
{
	each = nr_ops / nr_threads;
	for (int i = 0; i < nr_threads; i++)
		start(&ids[i], yielder);
	for (int i = 0; i < nr_threads; i++)
		pthread_join(ids[i], NULL);
}

static void creations(void)
{
	for (long i = 0; i < nr_ops; i++) {
		start(&ids[0], nothing);
		pthread_join(ids[0], NULL);
	}
}

static void round_trips(void)
{
	start(&ids[0], echo);
	for (long i = 0; i < nr_ops; i++) {
		sem_post(&there);
		sem_wait(&back);
	}
	pthread_join(ids[0], NULL);
}

static void fan_out(void)
{
	for (long i = 0; i < nr_ops; i += FAN_BATCH) {
		for (int j = 0; j < FAN_BATCH; j++)
			start(&ids[j], short_task);
		for (int j = 0; j < FAN_BATCH; j++)
			pthread_join(ids[j], NULL);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	uint64_t cpu_ns, wall_ns;
	cpu_set_t one;

	if (argc < 3)
		return 2;
	nr_ops = atol(argv[2]);
	sem_init(&there, 0, 0);
	sem_init(&back, 0, 0);
	if (strcmp(what, "fan_out")) {
		CPU_ZERO(&one);
		CPU_SET(sched_getcpu(), &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	wall_ns = clock_ns(CLOCK_MONOTONIC);
	if (!strcmp(what, "yield_2"))
		yields(2);
	else if (!strcmp(what, "yield_1000"))
		yields(1000);
	else if (!strcmp(what, "create_join"))
		creations();
	else if (!strcmp(what, "ping_pong"))
		round_trips();
	else if (!strcmp(what, "fan_out"))
		fan_out();
	else
		return 2;
	printf("{\"ns\": %.2f, \"wall_ns\": %.2f}\n",
	       (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns) / (double)nr_ops,
	       (double)(clock_ns(CLOCK_MONOTONIC) - wall_ns) / (double)nr_ops);
	return 0;
}
