/* SPDX-License-Identifier: MIT */
/*
 * thread.c - a user thread's life: created, joined or detached, ended.
 *
 *	ut_create -> core: attach, start -> ... -> ut_thread_exit
 *	                                             | leaves its stack
 *	      free  <-- joined, or detached <-- reaped, on the next one's
 *
 * A thread's memory is a place in one array and stays a thread for ever, since a
 * policy may hold on to a task that is no more (task.h). An id names the place
 * and the thread, so that an old id is recognised.
 *
 * Read next: sync.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ut.h"

/*
 * Free threads go from CPU to CPU by so many at once (Bonwick and Adams 2001): where
 * one creates and the other ends them, a lock is taken for each bundle.
 */
#define NR_BUNDLE 64
#define SPINS_MAX 1000		/* of a joiner, before it sleeps again */

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

	/* A place keeps the masks of its first thread that had an affinity. */
	for (u32 i = 0; ut.threads && i < ut.nr_threads_used; i++)
		sl_host_free(ut.threads[i].core.own_mask,
			     2 * sizeof(struct cpumask));
	sl_host_free(ut.threads, threads_bytes < 65536 ? 65536 : threads_bytes);
	sl_host_free(ut.slot_of_pid, (ut.pid_mask + 1ULL) * sizeof(u32));
	ut.threads = NULL;
	ut.slot_of_pid = NULL;
}

static ut_id id_of(const struct ut_thread *t)
{
	return (u64)t->generation << 32 | (t->slot + 1);
}

/* The place that an id names, whoever is there now; or NULL. */
static struct ut_thread *place_of(ut_id id)
{
	u32 slot = (u32)id - 1;

	return slot < ut.threads_max ? &ut.threads[slot] : NULL;
}

/* ---- memory of threads ----------------------------------------------------- */

/* @cpu has used up its bundle: take another one, or a place that is new. */
static sl_apart struct ut_thread *take_bundle(struct ut_cpu *cpu)
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
		t->slot = ut.nr_threads_used++;
		t->next = NULL;
		cpu->nr_free = 1;
	}
	sl_unlock(&ut.threads_lock);
	return t;
}

static struct ut_thread *take_place(void)
{
	struct ut_cpu *cpu = ut_this_cpu();
	struct ut_thread *t = cpu->free_threads;

	if (sl_unlikely(!t)) {
		t = take_bundle(cpu);
		if (!t) {
			cpu->nr_free = 0;
			return NULL;
		}
	}
	cpu->free_threads = t->next;
	cpu->nr_free--;
	return t;
}

/* @cpu has a whole bundle: put it aside, and what was there where all find it. */
static sl_apart void give_bundle(struct ut_cpu *cpu)
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
static void give_place(struct ut_thread *t)
{
	struct ut_cpu *cpu = ut_this_cpu();

	if (t->stack.bytes && t->stack.bytes != ut.stack_bytes) {
		ut_stack_free(&t->stack);
		t->stack.bytes = 0;
	}
	if (sl_unlikely(cpu->nr_free == NR_BUNDLE))
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
static int take_stack(struct ut_stack *stack, size_t bytes)
{
	struct ut_cpu *cpu = ut_this_cpu();
	struct ut_thread *t = find_stack(cpu->free_threads, bytes);
	struct ut_thread *bundle;

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

/* A pid that nobody has: they count up, so that records tell threads apart. */
static s32 take_pid(const struct ut_thread *t)
{
	s32 pid;
	u32 free;
	u32 *at;

	do {
		pid = (s32)(ut_add(&ut.last_pid, 1) & 0x7fffffff);
		at = &ut.slot_of_pid[(u32)pid & ut.pid_mask];
		free = 0;
	} while (!pid || sl_peek(at) ||
		 (ut_is_smp &&
		  !__atomic_compare_exchange_n(at, &free, t->slot + 1, false,
					       __ATOMIC_RELAXED, __ATOMIC_RELAXED)));
	sl_poke(at, t->slot + 1);
	return pid;
}

/* ---- birth ----------------------------------------------------------------- */

/* @pid: 0: the next free one. */
static int set_up(struct ut_thread *t, const struct ut_attr *attr, s32 pid)
{
	if (pid)
		sl_poke(&ut.slot_of_pid[(u32)pid & ut.pid_mask], t->slot + 1);
	sl_task_setup(&t->core, pid ? pid : take_pid(t),
		      attr && attr->name ? attr->name : "thread");
	return attr ? ut_attr_give(t, attr) : 0;
}

static void drop_pid(const struct ut_thread *t)
{
	sl_poke(&ut.slot_of_pid[(u32)t->core.p.pid & ut.pid_mask], 0);
}

static void *run_thread(void *arg);

static struct ut_thread *new_thread(const struct ut_attr *attr, ut_fn fn, void *arg,
				    bool has_stack, s32 pid, int *err)
{
	size_t stack_bytes = ut.stack_bytes;
	struct ut_thread *t;

	*err = attr ? ut_attr_check(attr) : 0;
	if (*err)
		return NULL;
	if (attr && attr->stack_bytes)
		stack_bytes = ut_stack_round(attr->stack_bytes);
	*err = -EAGAIN;
	t = take_place();
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
		*err = take_stack(&t->stack, stack_bytes);
	if (*err) {
		t->stack.bytes = 0;
		give_place(t);
		return NULL;
	}
	t->fn = fn;
	t->arg = arg;
	t->eh_globals[0] = NULL;
	t->eh_globals[1] = NULL;
	t->heap_idx = UT_NOT_IN_HEAP;
	t->is_cancelled = false;
	t->held = NULL;
	t->attr = (struct ut_attr)UT_ATTR_INIT;
	if (has_stack) {
		t->sp = ut_context_make(t->stack.low + t->stack.bytes -
					t->slot * 64 % UT_COLOURS_BYTES,
					run_thread, t);
		ut_sanitize_begin(&t->sanitized, false);
	}
	sl_lock(&t->lock);
	t->generation++;
	t->is_joinable = !(attr && attr->is_detached);
	t->has_ended = false;
	sl_poke(&t->joiner, NULL);
	sl_unlock(&t->lock);
	*err = set_up(t, attr, pid);
	if (!*err)
		*err = sl_task_attach(&t->core, true);
	if (*err) {
		drop_pid(t);
		give_place(t);
		return NULL;
	}
	ut_add(&ut.nr_threads, 1);
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
struct ut_thread *ut_thread_new(const struct ut_attr *attr, ut_fn fn, void *arg,
				bool has_stack, int *err)
{
	return new_thread(attr, fn, arg, has_stack, 0, err);
}

/* The same, with a stack and a pid that nobody else has: the runner's. */
struct ut_thread *ut_thread_new_pid(const struct ut_attr *attr, ut_fn fn,
				    void *arg, s32 pid, int *err)
{
	return new_thread(attr, fn, arg, true, pid, err);
}

int ut_create(ut_id *id, const struct ut_attr *attr, ut_fn fn, void *arg)
{
	struct ut_thread *self;
	struct ut_thread *t;
	int err;

	if (!ut_this_cpu())
		return -EPERM;
	if (!fn || (!id && !(attr && attr->is_detached)))
		return -EINVAL;
	ut_disable();
	self = ut_this_cpu()->curr;
	t = ut_thread_new(attr, fn, arg, true, &err);
	if (t) {
		/* Once started, it may end at once. */
		if (id)
			*id = id_of(t);
		sl_task_start(&t->core, self->core.p.pid);
	}
	ut_enable();
	return err;
}

/* ---- end -------------------------------------------------------------------- */

/*
 * Whoever joins @t can be chosen when it leaves its CPU: the CPU need not go idle
 * first. ut_thread_reap() wakes those who look before the stack is free.
 */
static void tell_joiner(struct ut_thread *t)
{
	/* Who comes later is found there, under the lock. */
	if (!sl_peek(&t->joiner))
		return;
	sl_lock(&t->lock);
	if (t->joiner)
		ut_wake(t->joiner);
	sl_unlock(&t->lock);
}

/* A context is left with the count at one, or whoever is next would pay for it. */
static sl_apart void drop_count(const struct ut_thread *t)
{
	char line[160];

	sl_print_to(line, sizeof(line),
		    "thread %s[%d] ended and had not enabled preemption again",
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
	if (sl_unlikely(ut_may_block()))
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
	sl_poke(&t->core.p.flags, t->core.p.flags | PF_EXITING);
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
	ut_reschedule(SL_WHY_EXIT);
	__builtin_unreachable();
}

/* A thread's whole life; see ut_context_entry(). */
static void *run_thread(void *arg)
{
	struct ut_thread *t = arg;

	ut_after_switch();
	ut_enable();
	end_thread(t->fn(t->arg));
	return ut_end_context();
}

/*
 * @t is dead and off its stack: whoever joins it may go on.
 * Context: preemption disabled, on the stack of whoever is next.
 */
void ut_thread_reap(struct ut_thread *t)
{
	struct ut_thread *joiner;
	bool is_free;
	u32 nr_left;

	drop_pid(t);
	if (t != ut.main)
		ut_sanitize_end(&t->sanitized);
	/* Under the lock: its attributes may be about to be changed. */
	sl_lock(&t->lock);
	sl_task_detach(&t->core);
	joiner = t->joiner;
	is_free = !t->is_joinable && !joiner && t != ut.main;
	sl_store(&t->has_ended, true);
	/* Most often it runs already, here. */
	if (joiner && joiner != ut_this_cpu()->curr)
		ut_wake(joiner);
	sl_unlock(&t->lock);
	/* Joined or not, it is no thread any more. */
	if (is_free)
		give_place(t);
	nr_left = ut_add(&ut.nr_threads, -1U);
	if (ut.main) {
		if (nr_left == 1 && sl_load(&ut.main->wait) == UT_WAIT_ALL)
			ut_wake(ut.main);
	} else if (!nr_left) {
		ut.on_last();
	}
}

/* The first thread waits until it is the only one. Context: preemption disabled. */
void ut_wait_for_others(void)
{
	struct ut_thread *self = ut_this_cpu()->curr;

	for (;;) {
		ut_prepare_wait(self, UT_WAIT_ALL, NULL);
		if (__atomic_load_n(&ut.nr_threads, __ATOMIC_SEQ_CST) == 1)
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
	struct ut_thread *t = place_of(id);

	if (!t)
		return NULL;
	sl_lock(&t->lock);
	if (id_of(t) == id)
		return t;
	sl_unlock(&t->lock);
	return NULL;
}

/* Return: 0 with @t->lock held, and @t the thread that @id names; or -errno. */
static int lock_joinable(struct ut_thread *t, ut_id id)
{
	if (!t)
		return -ESRCH;
	sl_lock(&t->lock);
	if (id_of(t) != id) {
		sl_unlock(&t->lock);
		return -ESRCH;
	}
	if (!t->is_joinable) {
		sl_unlock(&t->lock);
		return -EINVAL;
	}
	return 0;
}

static bool is_leaving(const struct ut_thread *t)
{
	return (sl_peek(&t->core.p.flags) & PF_EXITING) && !sl_load(&t->has_ended);
}

static int join(struct ut_thread *t, ut_id id, void **result,
		struct ut_stats *stats)
{
	struct ut_thread *self = ut_this_cpu()->curr;
	int err;

	if (t == self && id_of(t) == id)
		return -EDEADLK;
	err = lock_joinable(t, id);
	if (err)
		return err;
	if (sl_load(&t->wait) == UT_WAIT_JOIN && sl_peek(&t->wait_object) == self) {
		sl_unlock(&t->lock);
		return -EDEADLK;
	}
	t->is_joinable = false;
	sl_poke(&t->joiner, self);
	while (!t->has_ended) {
		ut_prepare_wait(self, UT_WAIT_JOIN, t);
		err = sl_load(&self->is_cancelled) ? -ECANCELED : ut_may_block();
		if (err)
			break;
		sl_unlock(&t->lock);
		ut_block(self);
		/* Another CPU may just be leaving its stack. */
		for (u32 i = 0; i < SPINS_MAX && is_leaving(t); i++)
			ut_pause();
		sl_lock(&t->lock);
	}
	ut_end_wait(self);
	sl_poke(&t->joiner, NULL);
	if (err) {
		t->is_joinable = true;
		sl_unlock(&t->lock);
		return err;
	}
	if (result)
		*result = t->result;
	if (stats)
		ut_stats_of(t, stats);
	/* From now on its id names nobody. */
	t->generation++;
	sl_unlock(&t->lock);
	give_place(t);
	return 0;
}

int ut_join_stats(ut_id id, void **result, struct ut_stats *stats)
{
	int err;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	err = join(place_of(id), id, result, stats);
	ut_enable();
	return err;
}

int ut_join(ut_id id, void **result)
{
	return ut_join_stats(id, result, NULL);
}

/*
 * Whatever it waits for, it is woken, finds that it is asked to end, and leaves
 * its queue by itself.
 */
int ut_cancel(ut_id id)
{
	struct ut_thread *t;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	t = ut_thread_lock(id);
	if (t) {
		sl_store(&t->is_cancelled, true);
		sl_unlock(&t->lock);
		ut_wake(t);
	}
	ut_enable();
	return t ? 0 : -ESRCH;
}

int ut_is_cancelled(void)
{
	bool is_cancelled;

	if (!ut_this_cpu())
		return 0;
	ut_disable();
	is_cancelled = sl_load(&ut_this_cpu()->curr->is_cancelled);
	ut_enable();
	return is_cancelled;
}

int ut_detach(ut_id id)
{
	struct ut_thread *t = place_of(id);
	bool is_free;
	int err;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	err = lock_joinable(t, id);
	if (!err) {
		t->is_joinable = false;
		is_free = t->has_ended;
		t->generation += is_free;
		sl_unlock(&t->lock);
		if (is_free)
			give_place(t);
	}
	ut_enable();
	return err;
}

/* ---- about oneself ----------------------------------------------------------- */

ut_id ut_self(void)
{
	ut_id id;

	if (!ut_this_cpu())
		return 0;
	ut_disable();
	id = id_of(ut_this_cpu()->curr);
	ut_enable();
	return id;
}

int ut_yield(void)
{
	int err;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	err = ut_may_block();
	if (sl_likely(!err))
		ut_give_way();
	ut_enable();
	return err;
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
	/* One too many would disable it for ever. */
	if (ut_this_cpu() && ut_count())
		ut_enable();
}
