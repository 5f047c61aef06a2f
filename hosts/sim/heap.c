/* SPDX-License-Identifier: MIT */
/*
 * heap.c - future events of tasks and timers, earliest first.
 *
 * A heap with four children per node: fewer levels, and a node's children share
 * a cache line or two. Events with equal keys leave in the order they came in.
 * Nothing is ever taken out of the middle, so no event can be left stale.
 *
 * Read next: loop.c, its only user beside interpret.c.
 */
#include <stdlib.h>

#include "sim.h"

static struct sim_event *events;
static u64 nr_events;
static u64 nr_allocated;
static u64 next_seq;

static bool comes_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->key < b->key || (a->key == b->key && a->seq < b->seq);
}

void sim_heap_push(u64 t_ns, enum sim_event_kind kind, struct sim_task *task)
{
	struct sim_event e = {
		.key = sim_key(t_ns, SIM_CLASS_WAKE),
		.seq = next_seq++,
		.task = task,
		.kind = kind,
	};
	u64 at = nr_events++;

	SL_ASSERT(t_ns >= sim_now_ns);
	if (nr_events > nr_allocated) {
		nr_allocated = nr_allocated ? 2 * nr_allocated : 1024;
		events = realloc(events, nr_allocated * sizeof(*events));
		SL_ASSERT(events);
	}
	while (at > 0) {
		u64 above = (at - 1) / 4;

		if (!comes_before(&e, &events[above]))
			break;
		events[at] = events[above];
		at = above;
	}
	events[at] = e;
}

u64 sim_heap_first_key(void)
{
	return nr_events ? events[0].key : SIM_NEVER;
}

struct sim_event sim_heap_pop(void)
{
	struct sim_event first = events[0];
	struct sim_event e;
	u64 at = 0;

	SL_ASSERT(nr_events > 0);
	e = events[--nr_events];
	for (;;) {
		u64 child = 4 * at + 1;
		u64 end = child + 4 < nr_events ? child + 4 : nr_events;
		u64 best = child;

		if (child >= nr_events)
			break;
		for (u64 i = child + 1; i < end; i++) {
			if (comes_before(&events[i], &events[best]))
				best = i;
		}
		if (!comes_before(&events[best], &e))
			break;
		events[at] = events[best];
		at = best;
	}
	events[at] = e;
	return first;
}
