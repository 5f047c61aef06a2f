/* SPDX-License-Identifier: MIT */
/*
 * gtthread.h - the names that report 3's programs use, for this library.
 *
 *	gtthread_app_init();
 *	uthread_create(&tid, function, argument, group, credits);
 *	...
 *	cpu_time_ns = gtthread_app_exit(&nr_threads);
 *
 * A thread's function returns int, and nobody joins it: gtthread_app_exit() waits
 * for all. The scheduler is the compiled policy that $SCHEDLAB_POLICY names, or the
 * library's FIFO; kernel threads are as many as $SCHEDLAB_CPUS says, or as there
 * are CPUs. To be included by one file of a program.
 *
 * Read next: docs/examples/matrix.c.
 */
#ifndef SCHEDLAB_GTTHREAD_H
#define SCHEDLAB_GTTHREAD_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <schedlab/uthreads.h>

#define GTTHREAD_MAX 1024

typedef unsigned int uthread_t;
typedef unsigned int uthread_group_t;

/* One thread: what it runs, its name in the library, its CPU time at its end. */
struct gtthread_ {
	int (*fn)(void *arg);
	void *arg;
	ut_id id;
	uint64_t cpu_time_ns;
};

static struct gtthread_ gtthreads_[GTTHREAD_MAX];
static unsigned int gtthread_nr_;	/* that were made; by any thread, atomic */

static void *gtthread_run_(void *arg)
{
	struct gtthread_ *t = (struct gtthread_ *)arg;
	intptr_t answer = t->fn(t->arg);

	t->cpu_time_ns = ut_cpu_time_ns(ut_self());
	return (void *)answer;
}

/* Start the package; without it there is no program, so a failure ends it. */
static inline void gtthread_app_init(void)
{
	struct ut_config config = UT_CONFIG_INIT;
	const char *cpus = getenv("SCHEDLAB_CPUS");

	config.policy = getenv("SCHEDLAB_POLICY");
	config.nr_cpus = cpus ? (uint32_t)atoi(cpus) : 0;
	if (ut_init(&config)) {
		fprintf(stderr, "gtthread_app_init: %s\n", ut_error_text());
		exit(1);
	}
}

/**
 * uthread_create - start a thread
 * @tid: where to put its number, 0, 1, 2, ...
 * @fn: what it runs
 * @arg: for @fn
 * @group: as policy `o1` sees it
 * @credits: as policy `credit` sees it; 0: the policy's own
 *
 * May switch. Return: 0; -EAGAIN beyond GTTHREAD_MAX; or as ut_create().
 */
static inline int uthread_create(uthread_t *tid, int (*fn)(void *), void *arg,
				 uthread_group_t group, int credits)
{
	struct ut_attr attr = UT_ATTR_INIT;
	unsigned int nr = __atomic_fetch_add(&gtthread_nr_, 1, __ATOMIC_RELAXED);

	if (nr >= GTTHREAD_MAX) {
		__atomic_fetch_sub(&gtthread_nr_, 1, __ATOMIC_RELAXED);
		return -EAGAIN;
	}
	gtthreads_[nr].fn = fn;
	gtthreads_[nr].arg = arg;
	attr.given = UT_GIVES_GROUP | (credits ? UT_GIVES_CREDITS : 0);
	attr.group = group;
	attr.credits = credits;
	*tid = nr;
	return ut_create(&gtthreads_[nr].id, &attr, gtthread_run_,
			 &gtthreads_[nr]);
}

static inline void gt_yield(void)
{
	ut_yield();
}

/*
 * Wait for all threads, stop the package, and say what CPU time each had: an array
 * of *@nr_threads numbers of ns, by thread number, that lives as long as the program.
 */
static inline const uint64_t *gtthread_app_exit(unsigned int *nr_threads)
{
	static uint64_t cpu_time_ns[GTTHREAD_MAX];

	/* Threads may make threads: their number is asked for each time. */
	for (unsigned int i = 0;
	     i < __atomic_load_n(&gtthread_nr_, __ATOMIC_ACQUIRE); i++) {
		if (ut_join(gtthreads_[i].id, NULL) == 0)
			cpu_time_ns[i] = gtthreads_[i].cpu_time_ns;
	}
	*nr_threads = gtthread_nr_;
	ut_exit();
	return cpu_time_ns;
}

#endif
