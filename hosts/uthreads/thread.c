/* SPDX-License-Identifier: MIT */
/*
 * thread.c - a user thread's life: created, joined or detached, ended.
 *
 *	ut_create -> core: attach, start -> ... -> ut_thread_exit
 *	                                             | leaves its stack
 *	      free  <-- joined, or detached <-- reaped, on the next one's
 *
 * A thread's memory is a place in one array and never becomes anything else,
 * since a policy may keep a pointer to a task that has ended (task.h). An id
 * names the place and the thread, so that an old id is recognised.
 *
 * Read next: place.c, where they come from.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ut.h"

#define SPINS_MAX 1000		/* of a joiner, before it sleeps again */

static ut_id id_of(const struct ut_thread *t)
{
	return (u64)t->generation << 32 | (t->slot + 1);
}

/* ---- birth ----------------------------------------------------------------- */

/* @pid: 0: the next free one. */
static int set_up(struct ut_thread *t, const struct ut_attr *attr, s32 pid,
		  const struct ut_thread *parent)
{
	int err;

	if (pid)
		WRITE_ONCE(*(ut_slot_of_pid(pid)), t->slot + 1);
	sl_task_setup(&t->core, t->slot, pid ? pid : ut_pid_take(t),
		      attr && attr->name ? attr->name : "thread");
	err = attr ? ut_attr_give(t, attr) : 0;
	/* S49: first what it asks for, of which its group may have none. */
	if (!err && attr && attr->cgroup)
		err = ut_cgroup_give(t, attr->cgroup);
	else if (!err && parent)
		err = sl_task_set_cgroup(&t->core, READ_ONCE(parent->core.p.cgroups)->dfl_cgrp);
	return err;
}

static void drop_pid(const struct ut_thread *t)
{
	WRITE_ONCE(*(ut_slot_of_pid(t->core.p.pid)), 0);
}

static struct ut_thread *new_thread(const struct ut_attr *attr, ut_fn fn, void *arg, bool has_stack,
				    s32 pid, int *err)
{
	size_t stack_bytes = ut.stack_bytes;
	struct ut_thread *parent = ut_this_cpu()->curr;
	struct ut_thread *t;

	*err = attr ? ut_attr_check(attr) : 0;
	if (*err)
		return NULL;
	if (attr && attr->stack_bytes)
		stack_bytes = ut_stack_round(attr->stack_bytes);
	*err = -EAGAIN;
	t = ut_place_take();
	if (!t)
		return NULL;
	*err = 0;
	if (t->stack.bytes && (!has_stack || t->stack.bytes != stack_bytes)) {
		ut_stack_free(&t->stack);
		t->stack.bytes = 0;
	}
	if (has_stack && !t->stack.bytes)
		*err = ut_stack_alloc(&t->stack, stack_bytes);
	if (*err)
		*err = ut_place_take_stack(&t->stack, stack_bytes);
	if (*err) {
		t->stack.bytes = 0;
		ut_place_give(t);
		return NULL;
	}
	t->fn = fn;
	t->arg = arg;
	t->eh_globals[0] = NULL;
	t->eh_globals[1] = NULL;
	t->saved_errno = 0;
	t->nr_pthread_locks = 0;
	t->heap_idx = UT_NOT_IN_HEAP;
	t->deadline_ns = UT_NEVER;
	t->is_cancelled = false;
	t->held = NULL;
	t->attr = (struct ut_attr)UT_ATTR_INIT;
	t->sp = NULL;
	if (has_stack)
		ut_sanitize_begin(&t->sanitized, false);
	sl_lock(&t->lock);
	t->generation++;
	t->is_joinable = !(attr && attr->is_detached);
	t->has_ended = false;
	WRITE_ONCE(t->joiner, NULL);
	sl_unlock(&t->lock);
	*err = set_up(t, attr, pid, parent);
	if (*err) {
		drop_pid(t);
		ut_place_give(t);
		return NULL;
	}
	sl_task_attach(&t->core, parent ? &parent->core : NULL);
	smp_store_release(&ut_this_cpu()->nr_begun, ut_this_cpu()->nr_begun + 1);
	return t;
}

/**
 * ut_thread_new - a thread that is attached and can be started
 * @attr: checked here; may be NULL
 * @has_stack: give it one; ut_init()'s caller has its own
 * @err: where to say what went wrong
 *
 * Context: preemption disabled.
 * Return: the thread; or NULL.
 */
struct ut_thread *ut_thread_new(const struct ut_attr *attr, ut_fn fn, void *arg, bool has_stack,
				int *err)
{
	return new_thread(attr, fn, arg, has_stack, 0, err);
}

/* The same, with a stack and a pid that no other thread has: the runner's. */
struct ut_thread *ut_thread_new_pid(const struct ut_attr *attr, ut_fn fn, void *arg, s32 pid,
				    int *err)
{
	return new_thread(attr, fn, arg, true, pid, err);
}

static int create(ut_id *id, const struct ut_attr *attr, ut_fn fn, void *arg)
{
	struct ut_thread *self = ut_this_cpu()->curr, *t;
	int err;

	if (!fn || (!id && !(attr && attr->is_detached)))
		return -EINVAL;
	t = ut_thread_new(attr, fn, arg, true, &err);
	if (!t)
		return err;
	/* Once started, it may end at once. */
	if (id)
		*id = id_of(t);
	ut_start(t, self->core.p.pid);
	return 0;
}

int ut_create(ut_id *id, const struct ut_attr *attr, ut_fn fn, void *arg)
{
	return ut_inside(create(id, attr, fn, arg));
}

/* ---- end -------------------------------------------------------------------- */

/*
 * The joiner of @t can be chosen when @t leaves its CPU: the CPU need not go idle
 * first. ut_thread_reap() wakes a joiner that looks before the stack is free.
 */
static void tell_joiner(struct ut_thread *t)
{
	/* A joiner that comes later is found there, under the lock. */
	if (!READ_ONCE(t->joiner))
		return;
	sl_lock(&t->lock);
	if (t->joiner)
		ut_wake(t->joiner, 0);
	sl_unlock(&t->lock);
}

/* A context is left with the count at one, or the next thread would pay for it. */
static __noinline void drop_count(const struct ut_thread *t)
{
	char line[160];

	sl_print_to(line, sizeof(line), "thread %s[%d] ended and had not enabled preemption again",
		    t->core.p.comm, t->core.p.pid);
	sl_host_print(line);
	while (ut_count() > 1)
		ut_count_down();
}

/* All but leaving the stack; preemption is disabled from here on. */
static void end_thread(void *result)
{
	struct ut_thread *t;

	if (!ut_this_cpu())
		ut_fault_no_machine();
	ut_disable();
	t = ut_this_cpu()->curr;
	if (unlikely(ut_may_block()))
		drop_count(t);
	if (t->slots) {
		/* The program's own functions: they may switch. */
		ut_enable();
		ut_slots_end();
		ut_disable();
	}
	t->result = result;
	if (t->held)
		ut_mutexes_end(t);
	ut_bind(t, false);
	sl_task_set_exiting(&t->core);
	/* One reading for both: they follow on each other. */
	sl_host_now_ns();
	ut_this_cpu()->hot.is_held = true;
	tell_joiner(t);
}

/*
 * The process's first thread stands on the stack that main() began on, so it stays:
 * as pthread_exit() there, it waits for all others, and then the process ends.
 */
static _Noreturn void exit_with_all(struct ut_thread *t)
{
	if (ut_may_block())
		drop_count(t);
	if (t->held)
		ut_mutexes_end(t);
	ut_enable();
	exit(ut_exit() ? EXIT_FAILURE : EXIT_SUCCESS);
}

void ut_thread_exit(void *result)
{
	if (ut_this_cpu()) {
		ut_disable();
		if (ut_this_cpu()->curr == ut.main)
			exit_with_all(ut.main);
		ut_enable();
	}
	end_thread(result);
	ut_schedule(SL_WHY_EXIT);
	__builtin_unreachable();
}

/* A thread's whole life; see ut_context_entry(). */
static void *run_thread(void *arg)
{
	struct ut_thread *t = arg;

	ut_finish_switch();
	ut_enable();
	end_thread(t->fn(t->arg));
	return ut_end_context();
}

/*
 * Where on its pages a stack begins: see UT_COLOURS_BYTES. Of the usual size, which is
 * 64 KiB, the next one has the next place; of smaller ones, a few have the same.
 */
static size_t colour_of(const struct ut_stack *stack)
{
	return ((uintptr_t)stack->low >> 16) * 64 % UT_COLOURS_BYTES;
}

/**
 * ut_thread_begin - a thread is about to run for the first time
 * @cpu: here
 * @t: chosen by the core; its context is made now
 *
 * It leaves its stack here, and takes the one whose thread ended here last: that
 * is in this CPU's cache, while its own may be in no cache at all, or in another
 * CPU's. When it ends it gets one back. So no spare stack is needed, and each
 * created thread has a stack.
 *
 * Context: preemption disabled, on any other stack.
 */
void ut_thread_begin(struct ut_cpu *cpu, struct ut_thread *t)
{
	if (cpu->warm_stack.bytes)
		ut_place_swap_stack(cpu, t);
	/* Its end will write there, and its creator has done so. */
	ut_prefetch(ut_slot_of_pid(t->core.p.pid));
	t->sp = ut_context_make(t->stack.low + t->stack.bytes - colour_of(&t->stack), run_thread, t);
}

/*
 * @t is dead and off its stack: its joiner may continue.
 * Context: preemption disabled, on the next stack.
 */
void ut_thread_reap(struct ut_thread *t)
{
	struct ut_cpu *cpu = ut_this_cpu();
	struct ut_thread *joiner;
	bool is_free;

	drop_pid(t);
	if (t != ut.main)
		ut_sanitize_end(&t->sanitized);
	ut_place_swap_stack(cpu, t);
	/* Under the lock: its attributes may be about to be changed. */
	sl_lock(&t->lock);
	sl_task_detach(&t->core);
	joiner = t->joiner;
	is_free = !t->is_joinable && !joiner && t != ut.main;
	smp_store_release(&t->has_ended, true);
	/* Most often it runs already, here. */
	if (joiner && joiner != cpu->curr)
		ut_wake(joiner, 0);
	sl_unlock(&t->lock);
	/* Joined or not, it is no thread any more. */
	if (is_free)
		ut_place_give(t);
	smp_store_release(&cpu->nr_ended, cpu->nr_ended + 1);
	/* The waiter for all threads has set `wait` before it counted. */
	sl_host_fence();
	if (ut.main) {
		if (smp_load_acquire(&ut.main->wait) == UT_WAIT_ALL && ut_threads_left() == 1)
			ut_wake(ut.main, 0);
	} else if (!ut_threads_left()) {
		ut.on_last();
	}
}

/*
 * How many threads have not been reaped. Every CPU counts for itself: one count for
 * all would go from one to the other with each thread. Between the two sums there
 * are no more than that, so 1 means that there is one; the last thread to end finds
 * that.
 */
u32 ut_threads_left(void)
{
	u64 nr_ended = 0;
	u64 nr_begun = 0;

	for (u32 i = 0; i < ut.nr_cpus; i++)
		nr_ended += smp_load_acquire(&ut.cpus[i].nr_ended);
	for (u32 i = 0; i < ut.nr_cpus; i++)
		nr_begun += smp_load_acquire(&ut.cpus[i].nr_begun);
	return (u32)(nr_begun - nr_ended);
}

/* The first thread waits until it is the only one. Context: preemption disabled. */
void ut_wait_for_others(void)
{
	struct ut_thread *self = ut_this_cpu()->curr;

	for (;;) {
		ut_prepare_block(self, UT_WAIT_ALL, NULL);
		/*
		 * Either this sees the last thread's end, or that thread sees the
		 * waiter.
		 */
		sl_host_fence();
		if (ut_threads_left() == 1)
			break;
		ut_block(self);
	}
	ut_end_wait(self);
}

/*
 * The thread that @id names, with its lock held: it stays until that is dropped,
 * though it may have ended. Or NULL. Context: preemption disabled.
 */
struct ut_thread *ut_thread_lock(ut_id id)
{
	u32 slot = (u32)id - 1;
	struct ut_thread *t = slot < ut.threads_max ? &ut.threads[slot] : NULL;

	if (!t)
		return NULL;
	sl_lock(&t->lock);
	if (id_of(t) == id)
		return t;
	sl_unlock(&t->lock);
	return NULL;
}

/* Return: 0, and @t is the thread that @id names, with its lock held; or -errno. */
static int lock_joinable(ut_id id, struct ut_thread **t)
{
	*t = ut_thread_lock(id);
	if (!*t)
		return -ESRCH;
	if ((*t)->is_joinable)
		return 0;
	sl_unlock(&(*t)->lock);
	return -EINVAL;
}

static bool is_leaving(const struct ut_thread *t)
{
	return (READ_ONCE(t->core.p.flags) & PF_EXITING) && !smp_load_acquire(&t->has_ended);
}

static int join(ut_id id, void **result, struct ut_stats *stats)
{
	struct ut_thread *self = ut_this_cpu()->curr, *t;
	u64 until_ns = self->deadline_ns;
	int err;

	if (id_of(self) == id)
		return -EDEADLK;
	err = lock_joinable(id, &t);
	if (err)
		return err;
	if (smp_load_acquire(&t->wait) == UT_WAIT_JOIN && READ_ONCE(t->wait_object) == self) {
		sl_unlock(&t->lock);
		return -EDEADLK;
	}
	if (t->has_ended)
		until_ns = UT_NEVER;
	else
		err = ut_begin_wait(self, until_ns);
	if (err) {
		sl_unlock(&t->lock);
		return err;
	}
	t->is_joinable = false;
	WRITE_ONCE(t->joiner, self);
	while (!t->has_ended) {
		ut_prepare_block(self, UT_WAIT_JOIN, t);
		err = ut_why_leave(self, UT_WAIT_JOIN, until_ns);
		if (err)
			break;
		sl_unlock(&t->lock);
		ut_block(self);
		/* Another CPU may just be leaving its stack. */
		for (u32 i = 0; i < SPINS_MAX && is_leaving(t); i++)
			ut_pause();
		sl_lock(&t->lock);
	}
	ut_end_timed_wait(self, until_ns);
	WRITE_ONCE(t->joiner, NULL);
	if (err) {
		t->is_joinable = true;
		sl_unlock(&t->lock);
		return err;
	}
	if (result)
		*result = t->result;
	if (stats)
		ut_stats_of(t, stats);
	/* From now on its id names no thread. */
	t->generation++;
	sl_unlock(&t->lock);
	ut_place_give(t);
	return 0;
}

int ut_join_stats(ut_id id, void **result, struct ut_stats *stats)
{
	return ut_inside(join(id, result, stats));
}

int ut_join(ut_id id, void **result)
{
	return ut_join_stats(id, result, NULL);
}

/*
 * Whatever it waits for, it is woken, finds that it is asked to end, and leaves
 * its queue by itself.
 */
static int cancel(ut_id id)
{
	struct ut_thread *t = ut_thread_lock(id);

	if (!t)
		return -ESRCH;
	smp_store_release(&t->is_cancelled, true);
	sl_unlock(&t->lock);
	ut_wake(t, 0);
	return 0;
}

int ut_cancel(ut_id id)
{
	return ut_inside(cancel(id));
}

int ut_is_cancelled(void)
{
	return ut_inside((int)smp_load_acquire(&ut_this_cpu()->curr->is_cancelled)) > 0;
}

static int detach(ut_id id)
{
	struct ut_thread *t;
	int err = lock_joinable(id, &t);
	bool is_free;

	if (err)
		return err;
	t->is_joinable = false;
	is_free = t->has_ended;
	t->generation += is_free;
	sl_unlock(&t->lock);
	if (is_free)
		ut_place_give(t);
	return 0;
}

int ut_detach(ut_id id)
{
	return ut_inside(detach(id));
}

/* ---- about oneself ----------------------------------------------------------- */

ut_id ut_self(void)
{
	return ut_this_cpu() ? ut_inside(id_of(ut_this_cpu()->curr)) : 0;
}

static int yield(void)
{
	int err = ut_may_block();

	if (likely(!err))
		ut_give_way();
	return err;
}

int ut_yield(void)
{
	return ut_inside(yield());
}

int ut_cpu(void)
{
	return ut_this_cpu() ? ut_tls_cpu_idx() : -1;
}

uint64_t ut_now_ns(void)
{
	return ut.is_running ? ut_clock_ns() : 0;
}

void ut_preempt_disable(void)
{
	if (ut_this_cpu())
		ut_disable();
}

void ut_preempt_enable(void)
{
	/* One too many would disable it indefinitely. */
	if (ut_this_cpu() && ut_count())
		ut_enable();
}
