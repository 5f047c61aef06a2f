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

/* The lower bits of `order`: kind and task, which need no place of their own. */
#define KIND_BITS 3
#define TASK_BITS 20
_Static_assert(SL_PROGRAM_TASKS_MAX <= 1 << TASK_BITS, "a task's number fits");

/*
 * Two arrays, because both halves of an event are written one by one: to read them
 * back as one piece would wait until the writes are over.
 */
static u64 *keys;	/* sim_key() */
static u64 *orders;	/* among equal keys; and what the event is */
static u64 nr_events;
static u64 nr_allocated;
static u64 next_seq;	/* the upper 41 bits: 2.2e12 events, days of computing */
u64 sim_heap_first_key = SIM_NEVER;

static bool comes_before(u64 key, u64 order, u64 at)
{
	return key < keys[at] || (key == keys[at] && order < orders[at]);
}

static void put(u64 at, u64 key, u64 order)
{
	keys[at] = key;
	orders[at] = order;
}

static sl_cold void grow(void)
{
	nr_allocated = nr_allocated ? 2 * nr_allocated : 1024;
	keys = realloc(keys, nr_allocated * sizeof(*keys));
	orders = realloc(orders, nr_allocated * sizeof(*orders));
	SL_ASSERT(keys && orders);
}

/* @task: NULL where @kind has none. */
void sim_heap_push(u64 t_ns, enum sim_event_kind kind, struct sim_task *task)
{
	u64 number = task ? (u32)task->core.p.pid - 1 : 0;
	u64 order = next_seq++ << (TASK_BITS + KIND_BITS) | number << KIND_BITS | kind;
	u64 key = sim_key(t_ns, SIM_CLASS_WAKE);
	u64 at = nr_events++;

	SL_ASSERT(t_ns >= sim_now_ns);
	if (unlikely(nr_events > nr_allocated))
		grow();
	while (at > 0) {
		u64 above = (at - 1) / 4;

		if (!comes_before(key, order, above))
			break;
		put(at, keys[above], orders[above]);
		at = above;
	}
	put(at, key, order);
	sim_heap_first_key = keys[0];
}

/* Take the first event out; @task is only right for a kind that has one. */
enum sim_event_kind sim_heap_pop(struct sim_task **task)
{
	u64 first = orders[0];
	u64 key, order, child;
	u64 at = 0;

	SL_ASSERT(nr_events > 0);
	key = keys[--nr_events];
	order = orders[nr_events];
	while ((child = 4 * at + 1) < nr_events) {
		u64 end = child + 4 < nr_events ? child + 4 : nr_events;
		u64 best = child;

		for (u64 i = child + 1; i < end; i++)
			best = comes_before(keys[i], orders[i], best) ? i : best;
		if (!comes_before(keys[best], orders[best], nr_events))
			break;
		put(at, keys[best], orders[best]);
		at = best;
	}
	put(at, key, order);
	sim_heap_first_key = nr_events ? keys[0] : SIM_NEVER;
	*task = &sim.tasks[first >> KIND_BITS & ((1U << TASK_BITS) - 1)];
	return first & ((1U << KIND_BITS) - 1);
}
