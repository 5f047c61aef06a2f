/* SPDX-License-Identifier: MIT */
/*
 * heap.c - future events of tasks and timers, earliest first.
 *
 * Sleeps of one length, and requests of one latency, end in the order they began: such
 * events form a run, a ring that grows at one end and is taken from at the other. What
 * does not come behind the run's last goes into a heap with four children per
 * node: fewer levels, and a node's children share a cache line or two. Events with
 * equal keys leave in the order they came in, after the run's end and an arrival.
 * Nothing is ever taken out of the middle, so no event can be left stale; and the end
 * is in the heap from the first, so it is never empty.
 *
 * Read next: loop.c, its only user beside interpret.c.
 */
#include <stdlib.h>

#include "sim.h"

/* The lower bits of `order`: kind and task, which need no place of their own. */
#define KIND_BITS 4
#define TASK_BITS 20
_Static_assert(SL_PROGRAM_TASKS_MAX <= 1 << TASK_BITS, "a task's number fits");

/*
 * Two arrays, because both halves of an event are written one by one: to read them
 * back as one piece would wait until the writes are over.
 */
struct events {
	u64 *keys;	  /* sim_key() */
	u64 *orders;	  /* among equal keys; and what the event is */
	u64 nr_allocated; /* a power of two */
};
static struct events heap, run;
static u64 heap_nr;
static u64 run_first, run_end; /* where the ring begins and ends, without going round */
static u64 run_mask;	       /* of a place in the ring */
static u64 run_last_key;       /* of what was put in last: once that is over, not later than now */
static bool is_first_in_run;   /* the earliest event */
#define SEQ_ONE (1ULL << (TASK_BITS + KIND_BITS))
static u64 next_seq = SEQ_ONE; /* the upper 41 bits: 2.2e12 events, days of computing */
u64 sim_heap_first_key = SIM_NEVER;

static bool comes_before(u64 key, u64 order, const struct events *of, u64 at)
{
	return key < of->keys[at] || (key == of->keys[at] && order < of->orders[at]);
}

static void put(struct events *to, u64 at, u64 key, u64 order)
{
	to->keys[at] = key;
	to->orders[at] = order;
}

static sl_cold void grow(struct events *events)
{
	events->nr_allocated = events->nr_allocated ? 2 * events->nr_allocated : 1024;
	events->keys = realloc(events->keys, events->nr_allocated * sizeof(u64));
	events->orders = realloc(events->orders, events->nr_allocated * sizeof(u64));
	if (!events->keys || !events->orders)
		sim_fail("usage", 0, "not enough memory for %llu events at once",
			 events->nr_allocated);
}

static void heap_push(u64 key, u64 order)
{
	u64 at = heap_nr++;

	if (unlikely(heap_nr > heap.nr_allocated))
		grow(&heap);
	while (at > 0) {
		u64 above = (at - 1) / 4;

		if (!comes_before(key, order, &heap, above))
			break;
		put(&heap, at, heap.keys[above], heap.orders[above]);
		at = above;
	}
	put(&heap, at, key, order);
}

/* Return: what the first one is. */
static u64 heap_pop(void)
{
	u64 first = heap.orders[0];
	u64 key, order, child;
	u64 at = 0;

	key = heap.keys[--heap_nr];
	order = heap.orders[heap_nr];
	while ((child = 4 * at + 1) < heap_nr) {
		u64 end = child + 4 < heap_nr ? child + 4 : heap_nr;
		u64 best = child;

		for (u64 i = child + 1; i < end; i++)
			best = comes_before(heap.keys[i], heap.orders[i], &heap, best) ? i : best;
		if (!comes_before(heap.keys[best], heap.orders[best], &heap, heap_nr))
			break;
		put(&heap, at, heap.keys[best], heap.orders[best]);
		at = best;
	}
	put(&heap, at, key, order);
	return first;
}

static u64 run_at(u64 n)
{
	return n & run_mask;
}

/* The ring becomes twice as large: each event is in both halves, and so where it belongs. */
static sl_cold void run_grow(void)
{
	u64 before = run.nr_allocated;

	grow(&run);
	run_mask = run.nr_allocated - 1;
	for (u64 i = 0; i < before; i++)
		put(&run, before + i, run.keys[i], run.orders[i]);
}

sl_inline void run_push(u64 key, u64 order)
{
	if (unlikely(run_end - run_first == run.nr_allocated))
		run_grow();
	put(&run, run_at(run_end++), key, order);
	run_last_key = key;
}

sl_inline u64 run_pop(void)
{
	return run.orders[run_at(run_first++)];
}

/* After each change: which event is first now. */
sl_inline void find_first(void)
{
	u64 at = run_at(run_first);

	is_first_in_run = run_first != run_end &&
			  comes_before(run.keys[at], run.orders[at], &heap, 0);
	sim_heap_first_key = is_first_in_run ? run.keys[at] : heap.keys[0];
}

/* What comes before all else of its time: SIM_EVENT_END or, of @task, ARRIVE. */
void sim_heap_push_first(u64 t_ns, enum sim_event_kind kind, u32 task)
{
	u64 key = sim_key(sim_instant(t_ns), SIM_CLASS_WAKE);

	heap_push(key, (u64)task << KIND_BITS | kind);
	find_first();
}

/* It does not come behind the run's last. */
static __noinline void push_early(u64 key, u64 order)
{
	if (run_end - run_first > 1) {
		heap_push(key, order);
	} else {
		/* A late one, alone, would keep the others out of the run. */
		heap_push(run_last_key, run_pop());
		run_push(key, order);
	}
	find_first();
}

/* @task: its number; 0 where @kind has none. */
inline void sim_heap_push(u64 t_ns, enum sim_event_kind kind, u32 task)
{
	u64 order = next_seq | (u64)task << KIND_BITS | kind;
	u64 key = sim_key(sim_instant(t_ns), SIM_CLASS_WAKE);

	SL_ASSERT(t_ns >= sim_now_ns);
	next_seq += SEQ_ONE;
	if (unlikely(key < run_last_key)) {
		push_early(key, order);
		return;
	}
	run_push(key, order);
	/* It is last in the run: it may come first only where it is alone there. */
	if (unlikely(key < sim_heap_first_key))
		find_first();
}

static enum sim_event_kind kind_of(u64 order, struct sim_task **task)
{
	*task = &sim.tasks[order >> KIND_BITS & ((1U << TASK_BITS) - 1)];
	return order & ((1U << KIND_BITS) - 1);
}

/* What the first event is; @task is only right for a kind that has one. */
enum sim_event_kind sim_heap_first(struct sim_task **task)
{
	return kind_of(is_first_in_run ? run.orders[run_at(run_first)] : heap.orders[0], task);
}

/* Take the first event out. */
enum sim_event_kind sim_heap_pop(struct sim_task **task)
{
	u64 first = is_first_in_run ? run_pop() : heap_pop();

	find_first();
	return kind_of(first, task);
}

static bool will_wake(const struct events *events, u64 at)
{
	return (events->orders[at] & ((1U << KIND_BITS) - 1)) >= SIM_EVENT_WAKE;
}

/* Is there an event that will wake a task? */
bool sim_heap_will_wake(void)
{
	for (u64 i = run_first; i < run_end; i++) {
		if (will_wake(&run, run_at(i)))
			return true;
	}
	for (u64 i = 0; i < heap_nr; i++) {
		if (will_wake(&heap, i))
			return true;
	}
	return false;
}
