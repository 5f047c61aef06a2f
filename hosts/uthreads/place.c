/* SPDX-License-Identifier: MIT */
/*
 * place.c - the memory of threads: their places, their stacks, their pids.
 *
 *	ut.free_bundles            64 free places each, for all CPUs
 *	  ^ |      ^ |
 *	  | v      | v             one CPU's: a bundle in use, and perhaps a whole one
 *	 CPU 0    CPU 1            and the stack that is warm in its cache
 *
 * A free place keeps its stack. Called by thread.c, with preemption disabled.
 *
 * Read next: stack.c.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "ut.h"

/*
 * Free threads go from CPU to CPU by so many at once (Bonwick and Adams 2001): where
 * one creates and the other ends them, a lock is taken for each bundle.
 */
#define NR_BUNDLE 64

int ut_threads_init(void)
{
	u64 threads_bytes = (u64)ut.threads_max * sizeof(struct ut_thread);
	u32 nr_pids = 1;

	/* Twice as many as threads: a free one is found at once. */
	while (nr_pids < 2 * ut.threads_max)
		nr_pids *= 2;
	ut.pid_mask = nr_pids - 1;
	ut.threads = sl_host_alloc(threads_bytes < 65536 ? 65536 : threads_bytes);
	ut.slot_of_pid = sl_host_alloc(nr_pids * sizeof(u32));
	sl_lock_init(&ut.threads_lock);
	return ut.threads && ut.slot_of_pid ? 0 : -ENOMEM;
}

void ut_threads_exit(void)
{
	u64 threads_bytes = (u64)ut.threads_max * sizeof(struct ut_thread);

	sl_host_free(ut.threads, threads_bytes < 65536 ? 65536 : threads_bytes);
	sl_host_free(ut.slot_of_pid, (ut.pid_mask + 1ULL) * sizeof(u32));
	ut.threads = NULL;
	ut.slot_of_pid = NULL;
}

/* @cpu has used up its bundle: take another one, or a place that is new. */
static __noinline struct ut_thread *take_bundle(struct ut_cpu *cpu)
{
	struct ut_thread *t = cpu->free_bundle;

	cpu->nr_free = NR_BUNDLE;
	if (t) {
		cpu->free_bundle = NULL;
		return t;
	}
	sl_lock(&ut.threads_lock);
	t = ut.free_bundles;
	if (t) {
		ut.free_bundles = t->prev;
	} else if (ut.nr_threads_used < ut.threads_max) {
		t = &ut.threads[ut.nr_threads_used];
		t->slot = ut.nr_threads_used;
		t->next = NULL;
		/* dump.c reads it without the lock. */
		smp_store_release(&ut.nr_threads_used, t->slot + 1);
		cpu->nr_free = 1;
	}
	sl_unlock(&ut.threads_lock);
	return t;
}

/* A free place; or NULL, when threads_max are taken. */
struct ut_thread *ut_place_take(void)
{
	struct ut_cpu *cpu = ut_this_cpu();
	struct ut_thread *t = cpu->free_threads;

	if (unlikely(!t)) {
		t = take_bundle(cpu);
		if (!t) {
			cpu->nr_free = 0;
			return NULL;
		}
	}
	cpu->free_threads = t->next;
	cpu->nr_free--;
	/* For the next call: by then it is there. */
	if (t->next)
		ut_prefetch_thread(t->next);
	return t;
}

/* @cpu has a whole bundle: put it aside, and what was there where all find it. */
static __noinline void give_bundle(struct ut_cpu *cpu)
{
	struct ut_thread *t = cpu->free_bundle;

	cpu->free_bundle = cpu->free_threads;
	cpu->free_threads = NULL;
	cpu->nr_free = 0;
	if (!t)
		return;
	sl_lock(&ut.threads_lock);
	t->prev = ut.free_bundles;
	ut.free_bundles = t;
	sl_unlock(&ut.threads_lock);
}

/* A free thread keeps its stack if it is of the usual size. */
void ut_place_give(struct ut_thread *t)
{
	struct ut_cpu *cpu = ut_this_cpu();

	if (t->stack.bytes && t->stack.bytes != ut.stack_bytes) {
		ut_stack_free(&t->stack);
		t->stack.bytes = 0;
	}
	if (unlikely(cpu->nr_free == NR_BUNDLE))
		give_bundle(cpu);
	t->next = cpu->free_threads;
	cpu->free_threads = t;
	cpu->nr_free++;
}

/* In a list of free threads, one with a stack of @bytes; or NULL. */
static struct ut_thread *find_stack(struct ut_thread *list, size_t bytes)
{
	while (list && list->stack.bytes != bytes)
		list = list->next;
	return list;
}

/*
 * There is no memory for a new stack, but perhaps one of a thread that is no more.
 * Free threads of other CPUs are not looked at: they are theirs, and few.
 */
int ut_place_take_stack(struct ut_stack *stack, size_t bytes)
{
	struct ut_cpu *cpu = ut_this_cpu();
	struct ut_thread *t = find_stack(cpu->free_threads, bytes);
	struct ut_thread *bundle;

	if (cpu->warm_stack.bytes == bytes) {
		*stack = cpu->warm_stack;
		cpu->warm_stack.bytes = 0;
		return 0;
	}
	if (!t)
		t = find_stack(cpu->free_bundle, bytes);
	sl_lock(&ut.threads_lock);
	for (bundle = ut.free_bundles; bundle && !t; bundle = bundle->prev)
		t = find_stack(bundle, bytes);
	if (t) {
		*stack = t->stack;
		t->stack.bytes = 0;
	}
	sl_unlock(&ut.threads_lock);
	return t ? 0 : -ENOMEM;
}

/* A pid that no thread has: they count up, so that records tell threads apart. */
s32 ut_pid_take(const struct ut_thread *t)
{
	s32 pid;
	u32 free;
	u32 *at;

	do {
		pid = (s32)(ut_add(&ut.last_pid, 1) & 0x7fffffff);
		at = ut_slot_of_pid(pid);
		free = 0;
	} while (!pid || READ_ONCE(*at) ||
		 (ut_is_smp && !__atomic_compare_exchange_n(at, &free, t->slot + 1, false,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED)));
	WRITE_ONCE(*at, t->slot + 1);
	ut_prefetch(ut_slot_of_pid(pid + 1));
	return pid;
}

/*
 * The stack of @t for the one whose thread ended on @cpu last, which may be none. Stacks
 * of another than the usual size stay with the thread that asked for them.
 */
void ut_place_swap_stack(struct ut_cpu *cpu, struct ut_thread *t)
{
	struct ut_stack warm = cpu->warm_stack;

	if (t->stack.bytes != ut.stack_bytes || t == ut.main)
		return;
	cpu->warm_stack = t->stack;
	t->stack = warm;
}
