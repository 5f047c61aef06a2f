/* SPDX-License-Identifier: MIT */
/*
 * gt.c - report 3's names for the library's threads; see gt.h.
 *
 * Read next: thread.c.
 */
#define GT_HAS_PROTOTYPES
#include <schedlab/gt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "ut.h"

struct gt_thread {
	ut_id id;
	int (*fn)(void *arg);
	void *arg;
	uint64_t cpu_time_ns;
};

static ut_mutex lock = UT_MUTEX_INIT;
/* lock protects, since threads create threads: */
static struct gt_thread **threads;
static unsigned int nr_threads, nr_room;

static kthread_context_t contexts[SCX_CPUS_MAX];
static kthread_context_t *cpu_map[SCX_CPUS_MAX];

/* How many CPUs the environment asks for; 0, which means all, where it does not. */
static uint32_t asked_cpus(void)
{
	const char *text = getenv("GT_CPUS");
	char *end;
	long nr;

	if (!text)
		return 0;
	nr = strtol(text, &end, 10);
	if (end == text || *end || nr < 1 || nr > INT32_MAX) {
		fprintf(stderr, "gtthread_app_init: GT_CPUS is '%s', not a number from 1 on\n",
			text);
		exit(1);
	}
	return (uint32_t)nr;
}

void gtthread_app_init(void)
{
	struct ut_config config = UT_CONFIG_INIT;

	for (unsigned int i = 0; i < SCX_CPUS_MAX; i++) {
		contexts[i].cpuid = i;
		cpu_map[i] = &contexts[i];
	}
	config.policy = getenv("GT_POLICY");
	config.nr_cpus = asked_cpus();
	if (ut_init(&config)) {
		fprintf(stderr, "gtthread_app_init: %s\n", ut_error_text());
		exit(1);
	}
}

static void *run(void *arg)
{
	struct gt_thread *t = arg;

	t->fn(t->arg);
	return NULL;
}

/* Context: lock held. */
static int make_room(void)
{
	unsigned int more = nr_room ? 2 * nr_room : 64;
	struct gt_thread **wider;

	if (nr_threads < nr_room)
		return 0;
	wider = realloc(threads, more * sizeof(*threads));
	if (!wider)
		return -1;
	threads = wider;
	nr_room = more;
	return 0;
}

static int create(uthread_t *tid, int (*fn)(void *arg), void *arg, uthread_group_t group,
		  const int *credits)
{
	struct ut_attr attr = UT_ATTR_INIT;
	struct gt_thread *t = malloc(sizeof(*t));
	int err;

	if (!t)
		return -1;
	t->fn = fn;
	t->arg = arg;
	attr.given = UT_GIVES_GROUP | (credits ? UT_GIVES_CREDITS : 0);
	attr.group = group;
	attr.credits = credits ? *credits : 0;
	attr.name = "uthread";
	err = ut_mutex_lock(&lock);
	if (!err) {
		err = make_room() || ut_create(&t->id, &attr, run, t);
		if (!err) {
			*tid = nr_threads;
			threads[nr_threads++] = t;
		}
		ut_mutex_unlock(&lock);
	}
	if (err)
		free(t);
	return err ? -1 : 0;
}

int uthread_create_4(uthread_t *tid, int (*fn)(void *arg), void *arg, uthread_group_t group)
{
	return create(tid, fn, arg, group, NULL);
}

int uthread_create(uthread_t *tid, int (*fn)(void *arg), void *arg, uthread_group_t group,
		   int credits)
{
	return create(tid, fn, arg, group, &credits);
}

int uthread_create_6(uthread_t *tid, int (*fn)(void *arg), void *arg, uthread_group_t group,
		     int credits, int mode)
{
	(void)mode;
	return create(tid, fn, arg, group, &credits);
}

int uthread_create_7(uthread_t *tid, int (*fn)(void *arg), void *arg, uthread_group_t group,
		     int credits, int mode, int more)
{
	(void)more;
	return uthread_create_6(tid, fn, arg, group, credits, mode);
}

int gt_spinlock_init(gt_spinlock_t *l)
{
	*l = (gt_spinlock_t)UT_MUTEX_INIT;
	return 0;
}

int gt_spin_lock(gt_spinlock_t *l)
{
	return ut_mutex_lock(l);
}

int gt_spin_unlock(gt_spinlock_t *l)
{
	return ut_mutex_unlock(l);
}

kthread_context_t **gt_cpu_map(void)
{
	return cpu_map;
}

unsigned int kthread_apic_id(void)
{
	int cpu = ut_cpu();

	return cpu < 0 ? 0 : (unsigned int)cpu;
}

void gt_yield(void)
{
	ut_yield();
}

/* Return: the thread with number @i; NULL: there is none yet. */
static struct gt_thread *thread_of(unsigned int i)
{
	struct gt_thread *t;

	ut_mutex_lock(&lock);
	t = i < nr_threads ? threads[i] : NULL;
	ut_mutex_unlock(&lock);
	return t;
}

uint64_t *gtthread_app_exit(void)
{
	uint64_t *times_ns;
	struct gt_thread *t;

	/* A thread that has been joined creates no other: the last one is the last. */
	for (unsigned int i = 0; (t = thread_of(i)); i++) {
		struct ut_stats stats = { 0 };

		ut_join_stats(t->id, NULL, &stats);
		t->cpu_time_ns = stats.cpu_time_ns;
	}
	times_ns = calloc(nr_threads ? nr_threads : 1, sizeof(*times_ns));
	for (unsigned int i = 0; i < nr_threads; i++) {
		if (times_ns)
			times_ns[i] = threads[i]->cpu_time_ns;
		free(threads[i]);
	}
	free(threads);
	threads = NULL;
	nr_threads = nr_room = 0;
	ut_exit();
	return times_ns;
}
