/* SPDX-License-Identifier: MIT */
/*
 * events.c - a cgroup of the program gets another weight or quota in the course of the run.
 *
 *	--events weight:OBJECT@NS+WEIGHT,quota:OBJECT@NS+NS_OF_EACH_PERIOD
 *
 * as hosts/check takes them, which has more kinds. They happen in the hook on CPU 0, in the
 * order of their times; the last of several that are due counts.
 *
 * Read next: play.c, the hook.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program_file.h"
#include "runner.h"

#define EVENTS_MAX 64 /* as in python/schedlab/workload/events.py */
#define WEIGHT_MAX 10000

static struct event {
	u64 at_ns;
	u64 value; /* a weight, or a quota in ns */
	u32 object;
	bool is_quota;
} events[EVENTS_MAX];
static u32 nr_events, next_event;

static int by_time(const void *a, const void *b)
{
	const struct event *x = a;
	const struct event *y = b;

	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

/* Return: what comes after the event at @text; NULL: there is none, or it cannot be. */
static const char *parse_one(const char *text)
{
	const void *program = run.program;
	unsigned long long at_ns, value;
	unsigned int object;
	struct event *e = &events[nr_events];
	char kind[8];
	int nr_read = 0;

	if (nr_events == EVENTS_MAX ||
	    sscanf(text, "%7[a-z]:%u@%llu+%llu%n", kind, &object, &at_ns, &value, &nr_read) != 4)
		return NULL;
	*e = (struct event){ at_ns, value, object, !strcmp(kind, "quota") };
	if ((!e->is_quota && strcmp(kind, "weight") != 0) || value < (e->is_quota ? 1000 : 1) ||
	    (!e->is_quota && value > WEIGHT_MAX) ||
	    object >= sl_program_header(program)->nr_objects ||
	    sl_program_objects(program)[object].kind != SL_OBJECT_GROUP)
		return NULL;
	nr_events++;
	return text + nr_read;
}

/* @text: NULL: there are none. Return: 0; -1: an event cannot be, and the run has failed. */
int events_prepare(const char *text)
{
	while (text && *text) {
		const char *rest = parse_one(text);

		if (!rest || (*rest && *rest != ',')) {
			run_fail("usage", 0,
				 "--events: '%s' should begin with weight:OBJECT@NS+WEIGHT or quota:OBJECT@NS+NS, OBJECT being a group of the program",
				 text);
			return -1;
		}
		text = *rest ? rest + 1 : rest;
	}
	qsort(events, nr_events, sizeof(events[0]), by_time);
	return 0;
}

u64 events_next_ns(void)
{
	return next_event < nr_events ? events[next_event].at_ns : UT_NEVER;
}

/* Context: the hook, on CPU 0, preemption disabled. */
void events_until(u64 now_ns)
{
	for (; events_next_ns() <= now_ns; next_event++) {
		const struct event *e = &events[next_event];

		if (e->is_quota)
			sl_cgroup_set_bandwidth(run.groups[e->object],
						sl_program_group(run.program,
								 e->object)[SL_GROUP_PERIOD_US],
						e->value / 1000, 0);
		else
			sl_cgroup_set_weight(run.groups[e->object], (u32)e->value);
	}
}
