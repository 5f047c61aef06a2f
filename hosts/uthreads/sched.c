/* SPDX-License-Identifier: MIT */
/*
 * sched.c - the only file that asks the core what runs next, and switches to it.
 *
 *	ut_schedule -> sl_schedule: which thread is next?
 *	   same thread: return
 *	   another:     ut_switch() to its stack, or to the idle loop's
 *	                -> ut_finish_switch() there: now, and not before, the
 *	                   thread that was left is visible to other CPUs
 *
 * The core queues a thread while it still stands on its stack; a CPU that takes it
 * waits for `on_cpu` to fall, which sl_switched() does from the next stack
 * (docs/design/0002 and 0004).
 *
 * Called by everything that may switch, with preemption disabled.
 *
 * Compare hosts/kernel/kernel/sched.c and hosts/sim/sched.c: the same functions in the
 * same order.
 *
 * Read next: context_x86_64.S; cpu.c, the kernel threads.
 */
#include "ut.h"

#define KEPT_NS 50000		/* two clocks do not differ by more */

/*
 * The frame that context_*.S takes a new context's registers from: @fn and @arg
 * in two that a function keeps, and ut_context_entry() to begin with.
 */
#if defined(__x86_64__)
enum { FRAME_WORDS = 8, FN = 4 /* r12 */, ARG = 5 /* rbx */, PC = 7 };
/* The control words of the ABI: mxcsr, and behind it the x87's. */
#define FIRST_WORD (0x1f80 | 0x37fULL << 32)
#elif defined(__aarch64__)
enum { FRAME_WORDS = 22, FN = 0 /* x19 */, ARG = 1 /* x20 */, PC = 11 };
#define FIRST_WORD 0
#else
enum { FRAME_WORDS = 26, FN = 1 /* s0 */, ARG = 2 /* s1 */, PC = 0 };
#define FIRST_WORD 0
#endif

void *ut_context_make(void *stack_top, void *(*fn)(void *), void *arg)
{
	u64 *sp = (u64 *)((uintptr_t)stack_top & ~(uintptr_t)15) - FRAME_WORDS;

	/* perf does not believe the last word of a stack, the first return address. */
	sp -= 2;
	/* Zeros end the chain of frames, and are the other control words. */
	__builtin_memset(sp, 0, FRAME_WORDS * sizeof(u64));
	sp[0] = FIRST_WORD;
	sp[FN] = (uintptr_t)fn;
	sp[ARG] = (uintptr_t)arg;
	sp[PC] = (uintptr_t)ut_context_entry;
	return sp;
}

/* C++ keeps the exceptions that are being handled by kernel thread. */
static void switch_exceptions(void **globals, struct ut_thread *from, struct ut_thread *to)
{
	if (from) {
		from->eh_globals[0] = globals[0];
		from->eh_globals[1] = globals[1];
	}
	globals[0] = to ? to->eh_globals[0] : NULL;
	globals[1] = to ? to->eh_globals[1] : NULL;
}

/* Of the stack that runs; a machine that was stopped is back on its first. */
static struct ut_sanitized *sanitized_of(struct ut_cpu *cpu)
{
	if (cpu->curr)
		return &cpu->curr->sanitized;
	return ut.main && smp_load_acquire(&ut.main->has_ended) ? &ut.main->sanitized :
								  &cpu->k->sanitized;
}

/* From one stack to another; NULL: that of @cpu's idle loop. */
void ut_switch_sanitized(struct ut_thread *from, struct ut_thread *to, struct ut_cpu *cpu)
{
	const struct ut_stack *stack = to ? &to->stack : &cpu->k->idle_stack;

	ut_sanitize_leave(from ? &from->sanitized : &cpu->k->sanitized,
			  to ? &to->sanitized : &cpu->k->sanitized, stack->low, stack->bytes);
	ut_switch(from ? &from->sp : &cpu->k->idle_sp, to ? to->sp : cpu->k->idle_sp);
}

/* @cpu is about to go on with @next; NULL: with its idle loop. */
sl_inline void set_next(struct ut_cpu *cpu, struct ut_thread *next)
{
	struct ut_thread *prev = cpu->curr;

	if (cpu->k->eh_globals)
		switch_exceptions(cpu->k->eh_globals, prev, next);
	if (prev)
		prev->saved_errno = *cpu->k->errno_at;
	if (next)
		*cpu->k->errno_at = next->saved_errno;
	if (next && unlikely(!next->sp))
		ut_thread_begin(cpu, next);
	cpu->left = prev;
	cpu->curr = next;
}

sl_inline void finish_switch(void);

/*
 * @next: NULL: the idle loop. Returns when the caller's turn has come again. Never
 * in line: the one place that ut_switch() is called from; see there.
 */
static __noinline __flatten void switch_to(struct ut_cpu *cpu, struct ut_thread *next)
{
	struct ut_thread *prev = cpu->curr;

	/* The waker did give way: the idle kernel thread looks by itself. */
	if (unlikely(cpu->put_off) && next)
		cpu->put_off = NULL;
	set_next(cpu, next);
	ut_switch_sanitized(prev, next, cpu);
	finish_switch();
}

/*
 * @cpu has become idle: perhaps its kernel thread goes on at once with what it has just
 * woken (handover.c), from here to there without the idle loop. The stack that is left
 * is in use until then. Another CPU may want the thread that stood on it, and this one a
 * thread whose stack that one stands on: so what is still on its stack is waited for
 * in the idle loop.
 * Return: the next thread of ut_this_cpu(); NULL: the idle loop.
 */
static __noinline struct ut_thread *hop(struct ut_cpu *from)
{
	struct ut_cpu *to;
	struct ut_thread *prev = from->curr, *next = NULL;

	if (READ_ONCE(from->pending))
		return NULL;
	/* Another kernel thread may play it in a moment. */
	from->curr = NULL;
	to = ut_take_over(from);
	if (to != from && ut_interrupt(to))
		next = ut_thread_of(sl_schedule(to->core, SL_WHY_TAKE_OVER, sl_host_now_ns()));
	to->curr = prev;
	if (to == from)
		return NULL;
	to->hot.is_held = false;
	/* Its sleepers needed no timer. */
	to->k->armed_floor_ns = UT_NEVER;
	if (next && (READ_ONCE(next->core.on_cpu) || ut_forced_choice())) {
		to->awaited = next;
		return NULL;
	}
	if (next)
		sl_task_take_stack(&next->core);
	return next;
}

/**
 * ut_schedule - let the core choose a thread for this CPU, and run it
 * @why: why the core is asked
 *
 * Context: preemption disabled, no lock held. On return the caller may be on
 * another kernel thread.
 */
void ut_schedule(enum sl_why why)
{
	struct ut_cpu *cpu = ut_this_cpu();
	struct ut_thread *next = ut_thread_of(sl_schedule(cpu->core, why, sl_host_now_ns()));

	if (!next && unlikely(cpu->put_off)) {
		next = hop(cpu);
		cpu = ut_this_cpu();
	}
	if (next != cpu->curr)
		switch_to(cpu, next);
	else if (next)
		ut_timer_check(cpu);
}

/**
 * ut_end_context - the thread that runs has ended, and its calls have returned
 *
 * Return: the next stack, for ut_context_entry() to go on with. Sanitizers are
 * told on the stack that is left, and then do not return from it.
 */
void *ut_end_context(void)
{
	struct ut_cpu *cpu = ut_this_cpu();
	struct ut_thread *next = ut_thread_of(sl_schedule(cpu->core, SL_WHY_EXIT, sl_host_now_ns()));

	if (!next && unlikely(cpu->put_off)) {
		next = hop(cpu);
		cpu = ut_this_cpu();
	}
	if (UT_IS_SANITIZED)
		switch_to(cpu, next);
	set_next(cpu, next);
	return next ? next->sp : cpu->k->idle_sp;
}

/**
 * ut_preempt_here - as ut_schedule(), from a signal
 * @is_bound: the thread holds the address of something thread-local
 *
 * If so, it stays on this kernel thread until it gives way in a call, or is
 * stopped when it holds none.
 */
void ut_preempt_here(bool is_bound)
{
	struct ut_thread *t = ut_this_cpu()->curr;

	ut_bind(t, is_bound);
	t->in_handler = true;
	ut_schedule(SL_WHY_RESCHED);
	t->in_handler = false;
}

sl_inline void give_way(struct ut_thread *t, enum sl_why why)
{
	/* In a call: no address of anything thread-local is kept. */
	if (unlikely(t->core.is_bound))
		ut_bind(t, false);
	ut_schedule(why);
}

/*
 * Sleep until woken; not at all if that has happened since ut_prepare_block(). A
 * thread that does not wait again calls ut_end_wait(). @self: the caller.
 */
void ut_block(struct ut_thread *self)
{
	give_way(self, SL_WHY_BLOCK);
}

void ut_give_way(void)
{
	give_way(ut_this_cpu()->curr, SL_WHY_YIELD);
}

/* The stack of @left, if there is one, is free; what runs now is charged from here. */
sl_inline void let_go(struct ut_cpu *cpu, struct ut_thread *left)
{
	sl_switched(cpu->core, left ? &left->core : NULL,
		    cpu->curr ? ut_switched_ns(&cpu->curr->core) : 0);
}

/* From the idle loop, or into it. */
static void after_idle(struct ut_cpu *cpu, struct ut_thread *left)
{
	/* Into the idle loop from nowhere: the machine is being stopped. */
	if (!left && !cpu->curr)
		return;
	if (unlikely(cpu->awaited && left)) {
		sl_task_leave_stack(&left->core);
		return;
	}
	let_go(cpu, left);
	/* An idle CPU's sleepers needed no timer. */
	if (cpu->curr)
		ut_timer_arm(cpu);
	else if (cpu->k->is_masked)
		ut_unmask(cpu->k);
}

/* The same where one of the two is the idle loop, or the old one's thread is dead. */
static __noinline void after_end(struct ut_cpu *cpu, struct ut_thread *left)
{
	/* Asked before it is let go: then it may run, and end, elsewhere. */
	bool is_dead = left && READ_ONCE(left->core.state) == SL_TASK_DEAD;

	/* Only a thread that ends holds the clock. */
	cpu->hot.is_held = false;
	if (left && cpu->curr) {
		let_go(cpu, left);
		ut_timer_check(cpu);
	} else {
		after_idle(cpu, left);
	}
	if (is_dead)
		ut_thread_reap(left);
}

/* What is to be done on the new stack about the old one. */
sl_inline void finish_switch(void)
{
	struct ut_cpu *cpu = ut_this_cpu();
	struct ut_thread *left = cpu->left;

	ut_sanitize_arrive(sanitized_of(cpu));
	/* The timer may have gone off since the last look at it: it is set anew. */
	if (UT_KEEPS_SIGNALS && cpu->k->armed_ns < ut_clock_ns() + KEPT_NS)
		cpu->k->armed_ns = cpu->k->armed_floor_ns = UT_NEVER;
	if (unlikely(cpu->k->is_masked) && cpu->curr && !cpu->curr->in_handler)
		__atomic_fetch_or(&cpu->pending, UT_PENDING_UNMASK, __ATOMIC_RELAXED);
	if (unlikely(!left || !cpu->curr || READ_ONCE(left->core.state) == SL_TASK_DEAD)) {
		after_end(cpu, left);
		return;
	}
	let_go(cpu, left);
	ut_timer_check(cpu);
}

/* The same, for a stack that begins. */
__flatten void ut_finish_switch(void)
{
	finish_switch();
}

/* From the idle loop. Return: false when there was no thread to run. */
static bool run_next(struct ut_cpu *cpu)
{
	struct ut_thread *next = ut_thread_of(
		sl_schedule(cpu->core, SL_WHY_RESCHED, sl_host_now_ns()));

	SL_ASSERT(!cpu->curr);
	if (!next)
		return false;
	ut_stolen_idle(cpu, cpu->hot.now_ns);
	WRITE_ONCE(cpu->k->nr_active, cpu->k->nr_active + 1);
	/* From now on a kick needs a signal; see ut_ring(). */
	__atomic_exchange_n(&cpu->k->doorbell, UT_BELL_OFF, __ATOMIC_SEQ_CST);
	/* Before `pending` is looked at again. */
	ut_fence_after_exchange();
	switch_to(cpu, next);
	/* See hop(). */
	while ((next = (cpu = ut_this_cpu())->awaited)) {
		cpu->awaited = NULL;
		sl_task_take_stack(&next->core);
		switch_to(cpu, next);
	}
	return true;
}

/* An idle CPU asks the core when it was kicked; a timer or I/O alone is no reason. */
void ut_idle_loop(struct ut_cpu *cpu)
{
	bool must_schedule, is_needless = false;
	u64 idle;

	/* CPU 0's time has gone on since the clock's restart, the policy's start included. */
	if (!cpu->id)
		ut_stolen_idle(cpu, sl_host_now_ns());
	ut_stolen_mark(cpu);
	for (;;) {
		must_schedule = ut_is_wanted(cpu) && ut_interrupt(cpu);
		if (smp_load_acquire(&ut.is_stopping)) {
			ut_clock_end(cpu);
			return;
		}
		if (must_schedule && run_next(cpu)) {
			/* Idle since the core began to look for a task. */
			/* A thread that ran here may have taken over another CPU. */
			cpu = ut_this_cpu();
			cpu->k->idle_since_ns = cpu->hot.now_ns;
			WRITE_ONCE(cpu->k->doorbell, UT_BELL_AWAKE);
			is_needless = false;
			continue;
		}
		is_needless |= must_schedule;
		cpu->hot.is_held = false;
		/* The interrupt may have woken a thread that becomes runnable here. */
		if (ut_is_wanted(cpu))
			continue;
		cpu = ut_take_over(cpu);
		if (ut_is_wanted(cpu))
			continue;
		/* If all CPUs are idle, perhaps nothing is left that wakes a thread. */
		idle = __atomic_add_fetch(&ut.idle, 1, __ATOMIC_SEQ_CST);
		if ((u32)idle == ut.nr_cpus)
			ut_look_for_deadlock(idle);
		cpu = ut_wait_for_work(cpu, !is_needless);
		__atomic_add_fetch(&ut.idle, UT_LEAVES_IDLE, __ATOMIC_SEQ_CST);
	}
}

/**
 * ut_prepare_block - the calling thread is about to become visible to its wakers
 * @wait: what for
 * @object: the mutex, thread, ... concerned; for people
 */
void ut_prepare_block(struct ut_thread *t, enum ut_wait wait, const void *object)
{
	WRITE_ONCE(t->wait_object, object);
	smp_store_release(&t->wait, (u8)wait);
	sl_task_prepare_block(ut_this_cpu()->core, &t->core);
}

/* @wake_flags: SCX_WAKE_SYNC or 0. Context: preemption disabled; the object's lock may
 * be held, no other. */
void ut_wake(struct ut_thread *t, u64 wake_flags)
{
	struct ut_cpu *cpu = ut_this_cpu();
	struct ut_thread *self = cpu->curr;

	sl_task_wake(cpu->core, &t->core, wake_flags, self ? self->core.p.pid : 0);
}

/*
 * The first of those that wait for a timer, or for I/O, is due: no thread wakes it.
 * Context: as ut_wake().
 */
void ut_wake_by_interrupt(struct ut_thread *t)
{
	sl_task_wake(ut_this_cpu()->core, &t->core, 0, 0);
}

/* Return: whether the running thread has to make way. */
bool ut_tick(struct ut_cpu *cpu, u64 now_ns)
{
	return sl_tick(cpu->core, now_ns, ut_tick_late_ns);
}

/* @t, which is attached, begins. @parent_pid: 0: the host starts it. */
void ut_start(struct ut_thread *t, s32 parent_pid)
{
	sl_task_start(ut_this_cpu()->core, &t->core, SCX_WAKE_FORK, parent_pid);
}

/* Stop the machine, even if threads run. Context: preemption disabled, on any CPU. */
void ut_end_all(void)
{
	smp_store_release(&ut.is_ending, 1);
	smp_store_release(&ut.is_stopping, 1);
	for (u32 i = 0; i < ut.nr_cpus; i++)
		ut_ring(&ut.cpus[i], UT_PENDING_KICK);
}

/* The thread that runs here is left for good, with a record of it. */
void ut_abandon(struct ut_cpu *cpu)
{
	struct ut_thread *t = cpu->curr;

	sl_stop_at_horizon(cpu->core, sl_host_now_ns());
	cpu->curr = NULL;
	cpu->left = NULL;
	ut_switch_sanitized(t, NULL, cpu);
	__builtin_unreachable();
}
