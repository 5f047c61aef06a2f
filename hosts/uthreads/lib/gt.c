/* SPDX-License-Identifier: MIT */
/*
 * gt.c - report 3's names for our threads; see gt.h.
 *
 * Read next: thread.c.
 */
#include <schedlab/gt.h>
#include <schedlab/uthreads.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct gt_thread {
	ut_id id;
	int (*fn)(void *arg);
	void *arg;
};

static struct gt_thread **threads;
static unsigned int nr_threads, nr_room;

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
		fprintf(stderr, "gtthread_app_init: GT_CPUS is '%s', not a number from 1 on\n", text);
		exit(1);
	}
	return (uint32_t)nr;
}

void gtthread_app_init(void)
{
	struct ut_config config = UT_CONFIG_INIT;

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

int uthread_create(uthread_t *tid, int (*fn)(void *arg), void *arg,
		   uthread_group_t group, int credits)
{
	struct ut_attr attr = UT_ATTR_INIT;
	struct gt_thread *t;

	if (make_room())
		return -1;
	t = malloc(sizeof(*t));
	if (!t)
		return -1;
	t->fn = fn;
	t->arg = arg;
	attr.given = UT_GIVES_GROUP | UT_GIVES_CREDITS;
	attr.group = group;
	attr.credits = credits;
	attr.name = "uthread";
	if (ut_create(&t->id, &attr, run, t)) {
		free(t);
		return -1;
	}
	*tid = nr_threads;
	threads[nr_threads++] = t;
	return 0;
}

void gt_yield(void)
{
	ut_yield();
}

uint64_t *gtthread_app_exit(void)
{
	uint64_t *times_ns = calloc(nr_threads ? nr_threads : 1, sizeof(*times_ns));

	for (unsigned int i = 0; i < nr_threads; i++) {
		struct ut_stats stats = { 0 };

		ut_join_stats(threads[i]->id, NULL, &stats);
		if (times_ns)
			times_ns[i] = stats.cpu_time_ns;
		free(threads[i]);
	}
	free(threads);
	threads = NULL;
	nr_threads = nr_room = 0;
	ut_exit();
	return times_ns;
}
