/* SPDX-License-Identifier: MIT */
/*
 * schedule.c - what happens on a CPU: choose the next task, tick, charge time.
 *
 *	sl_schedule:  charge -> stop if blocking -> balance_one -> queue the previous
 *	              task -> take the next -> drop the lock -> flush
 *
 * Called by hosts, on the CPU concerned. The order matters: the previous task
 * is on no queue while the policy chooses (S8), and is queued only after the
 * choice, so that no other CPU can take it while this CPU might still wait for it.
 *
 * Read next: wake.c.
 */
#include "core.h"

/* The start of a time that has not begun: it lies behind every clock. */
#define NOT_YET (1ULL << 62)

/* S10: running uses up the slice; an endless one stays. */
static void charge(struct sl_task *t, u64 now_ns)
{
	/* sl_switched() starts the clock without the lock, from NOT_YET. */
	u64 ran_ns = now_ns - READ_ONCE(t->exec_start_ns);
	u64 slice_ns;

	if ((s64)ran_ns <= 0)
		return;
	WRITE_ONCE(t->exec_start_ns, now_ns);
	ran_ns -= sl_host_stolen_ns(t, ran_ns);
	t->charged_ns += ran_ns;
	WRITE_ONCE(t->p.se.sum_exec_runtime, t->p.se.sum_exec_runtime + ran_ns);
	slice_ns = sl_slice(t);
	if (slice_ns == SCX_SLICE_INF)
		return;
	sl_set_slice(t, slice_ns - (ran_ns < slice_ns ? ran_ns : slice_ns));
}

/* The record and the counters of a task that leaves the CPU; hosts read them without the lock. */
sl_inline void account_stop(struct sl_cpu *cpu, struct sl_task *t, enum sl_stop why)
{
	sl_host_record(SL_RECORD_STOP, t->p.pid, cpu->id, why, t->charged_ns);
	if (why == SL_STOP_PREEMPTED)
		WRITE_ONCE(t->p.nivcsw, t->p.nivcsw + 1);
	else
		WRITE_ONCE(t->p.nvcsw, t->p.nvcsw + 1);
}

/* S11: a task that blocks or ends leaves the policy's sight. */
sl_inline void stop_running(struct sl_cpu *cpu, struct sl_task *t, bool is_exit)
{
	enum sl_task_state state = SL_TASK_BLOCKED;
	enum sl_stop why = SL_STOP_BLOCKED;

	t->p.__state = 1;
	if (unlikely(is_exit)) {
		t->p.__state = 0x80;
		state = SL_TASK_DEAD;
		why = SL_STOP_EXITED;
	}
	SL_CALL_OP(cpu, stopping, t, &t->p, false);
	SL_CALL_OP(cpu, quiescent, t, &t->p, SCX_DEQ_SLEEP);
	t->p.scx.flags &= ~SCX_TASK_QUEUED;
	smp_store_release(&t->state, state);
	account_stop(cpu, t, why);
}

/* S14: without ops.yield() the slice is given up; with it, the policy decides. */
sl_inline void yield(struct sl_cpu *cpu, struct sl_task *t)
{
	if (SL_HAS_OP(yield))
		SL_CALL_RET(cpu, SL_OP(yield), yield, t, &t->p, NULL);
	else
		sl_set_slice(t, 0);
}

/* Is there a task on the local queue, or on the global one for it? */
sl_inline bool has_task(struct sl_cpu *cpu)
{
	return cpu->local.first || (unlikely(READ_ONCE(sl_core.global.first)) &&
				    consume_dispatch_q(cpu, &sl_core.global, SCX_DSQ_GLOBAL, 0));
}

/*
 * Fill the local queue: from the global one, then by the policy (S7).
 * @prev: the task that was running; NULL: none, or one that may not run here any more
 * @stays: @prev, if it wants the CPU still; or NULL
 * Return: true if @stays is to go on running; otherwise the local queue's first is.
 */
sl_inline bool balance_one(struct sl_cpu *cpu, struct sl_task *prev, struct sl_task *stays)
{
	u32 nr_loops = SL_DISPATCH_LOOPS_MAX;

	/* S10: a task with slice left keeps the CPU. */
	if (stays && sl_slice(stays) && !sl_is_bypassed())
		return true;
	if (has_task(cpu))
		return false;
	while (SL_HAS_OP(dispatch)) {
		cpu->nr_moved = 0;
		SL_CALL(cpu, SL_OP(dispatch), dispatch, prev, cpu->id, prev ? &prev->p : NULL);
		if (cpu->nr_inserts)
			flush_dispatch_buf(cpu);
		/* S8: the policy may have renewed the slice of @prev. */
		if (stays && sl_slice(stays))
			return true;
		if (has_task(cpu))
			return false;
		/* S38: it did something, but for other CPUs. @prev runs after so many tries. */
		if (unlikely(!--nr_loops))
			kick_cpu(cpu, cpu->id, 0);
		if (!nr_loops || !cpu->nr_moved)
			break;
	}
	/* S12: the last task stays, unless the policy wants to hear of it. */
	if (!stays || (!sl_is_bypassed() && (SL_OP(flags) & SCX_OPS_ENQ_LAST)))
		return false;
	sl_event(cpu, DISPATCH_KEEP_LAST);
	return true;
}

/* The previous task is still runnable: it waits from now on. */
static void requeue(struct sl_cpu *cpu, struct sl_task *t, enum sl_why why, u64 now_ns, bool is_last)
{
	SL_CALL_OP(cpu, stopping, t, &t->p, true);
	account_stop(cpu, t, why == SL_WHY_YIELD ? SL_STOP_YIELDED : SL_STOP_PREEMPTED);
	/* In this order: the watchdog reads them without the lock. */
	set_runnable_at(t, now_ns);
	smp_store_release(&t->state, SL_TASK_RUNNABLE);
	if (unlikely(!sl_may_run_on(t, cpu->id))) {
		/*
		 * S18: its affinity changed while it ran here. It moves without
		 * ceasing to be runnable: the policy hears of the enqueue alone.
		 */
		smp_store_release(&t->state, SL_TASK_WAKING);
		defer_migration(cpu, t);
		return;
	}
	do_enqueue_task(cpu, cpu, t, is_last ? SCX_ENQ_LAST : 0);
}

/* Take @t off the local queue and make it the running task. */
sl_inline void take_next(struct sl_cpu *cpu, struct sl_task *t, u64 now_ns)
{
	u64 wait_ns;

	SL_ASSERT(t->state == SL_TASK_RUNNABLE);
	dsq_unlink(&cpu->local, t);
	smp_store_release(&t->state, SL_TASK_RUNNING);
	t->is_blocking = false;
	/* The CPU that queued it may have read the clock later: no wait, then. */
	wait_ns = sl_time_before(now_ns, t->runnable_at_ns) ? 0 : now_ns - t->runnable_at_ns;
	WRITE_ONCE(t->wait_ns, t->wait_ns + wait_ns);
	if (wait_ns > t->wait_ns_max)
		WRITE_ONCE(t->wait_ns_max, wait_ns);
	/* S13: no task runs with an empty slice. */
	if (!sl_slice(t))
		refill_task_slice_dfl(cpu, t);
	WRITE_ONCE(t->exec_start_ns, NOT_YET);
	t->charged_ns = 0;
}

/* The CPU goes idle, stays so, or was. */
static __noinline void account_idle(struct sl_cpu *cpu, u64 now_ns, bool was_idle, bool is_idle)
{
	/* A higher class had it: it was not idle. */
	if (unlikely(cpu->is_taken)) {
		cpu->is_taken = false;
		was_idle = false;
	}
	if (was_idle)
		cpu->idle_ns += now_ns - cpu->idle_since_ns;
	cpu->idle_since_ns = now_ns;
	update_idle(cpu, is_idle, was_idle != is_idle);
}

/**
 * sl_schedule - leave the running task if need be, and choose what runs next
 * @cpu: this CPU
 * @why: what brought it here
 * @now_ns: what ran is charged until then
 *
 * SL_WHY_BLOCK blocks only if no wake-up came since sl_task_prepare_block().
 * If the result is another task than before, the host switches to it and then
 * calls sl_switched(); NULL means idle. The result's stack is free, but for
 * SL_WHY_TAKE_OVER: then the host calls sl_task_take_stack().
 *
 * Context: on the CPU concerned, no lock held, see host.h.
 * Return: the task to run, which may be the one that was running; or NULL.
 */
__flatten struct sl_task *sl_schedule(struct sl_cpu *cpu, enum sl_why why, u64 now_ns)
{
	struct sl_task *prev, *next, *asked, *stays = NULL;
	bool keeps_prev;

	sl_lock(&cpu->lock);
	/* Most likely it is next. While bypassed, the queue may be about to go. */
	sl_host_prefetch_task(sl_is_bypassed() ? NULL : READ_ONCE(READ_ONCE(cpu->last_dsq)->first));
	cpu->holds_lock = true;
	cpu->is_scheduling = true;
	if (unlikely(cpu->must_quiesce))
		smp_store_release(&cpu->must_quiesce, false);
	prev = asked = cpu->curr;
	if (prev) {
		SL_ASSERT(prev->state == SL_TASK_RUNNING);
		charge(prev, now_ns);
		if (why > SL_WHY_BLOCK || (why == SL_WHY_BLOCK && prev->is_blocking)) {
			stop_running(cpu, prev, why == SL_WHY_EXIT);
		} else {
			if (why == SL_WHY_YIELD)
				yield(cpu, prev);
			/* S18: then it is no choice any more, whatever slice it has. */
			if (likely(sl_may_run_on(prev, cpu->id)))
				stays = prev;
			else
				asked = NULL;
		}
	}
	cpu->is_open = true;
	keeps_prev = balance_one(cpu, asked, stays);
	/* S50: what came in front of it, or behind a task that stays. */
	if (unlikely(READ_ONCE(sl_core.uses_immed)) && cpu->local.nr > 1)
		check_immed(cpu);
	cpu->is_open = !keeps_prev && !cpu->local.first;
	if (keeps_prev) {
		if (!sl_slice(prev))
			refill_task_slice_dfl(cpu, prev);
		next = prev;
	} else {
		/*
		 * @prev cannot overtake the chosen task, even when the policy puts it
		 * at the head of this queue; and when none is chosen, it
		 * comes back by way of idle (S12).
		 */
		next = cpu->local.first;
		if (prev && prev->state == SL_TASK_RUNNING)
			requeue(cpu, prev, why, now_ns, !next);
		if (next)
			take_next(cpu, next, now_ns);
		smp_store_release(&cpu->curr, next);
		if (unlikely(!prev || !next))
			account_idle(cpu, now_ns, !prev, !next);
		if (next) {
			SL_CALL_OP(cpu, running, next, &next->p);
			WRITE_ONCE(cpu->nr_switches, cpu->nr_switches + 1);
		}
	}
	cpu->is_scheduling = cpu->is_open = false;
	cpu->holds_lock = false;
	if (!next && cpu->local.first)
		sl_host_kick(cpu->id);
	sl_unlock(&cpu->lock);
	flush(cpu);
	if (SL_HOST_HAS_STACKS && next && next != prev && why != SL_WHY_TAKE_OVER)
		sl_task_take_stack(next);
	return next;
}

/*
 * Wait until no CPU stands on the stack of @t, and stand on it. Context: no CPU waits
 * until this one leaves the stack on which it stands.
 */
void sl_task_take_stack(struct sl_task *t)
{
	while (unlikely(smp_load_acquire(&t->on_cpu)))
		sl_host_relax();
	smp_store_release(&t->on_cpu, true);
}

/* This CPU has left the stack of @t, and waits before it switches; see sl_switched(). */
void sl_task_leave_stack(struct sl_task *t)
{
	smp_store_release(&t->on_cpu, false);
}

/* @t runs elsewhere than the last time, or for the first time. */
static __noinline void account_migration(struct sl_cpu *cpu, struct sl_task *t)
{
	if (t->last_cpu >= 0) {
		WRITE_ONCE(t->nr_migrations, t->nr_migrations + 1);
		sl_host_record(SL_RECORD_MIGRATE, t->p.pid, cpu->id, 0, (u64)t->last_cpu);
	}
	t->last_cpu = cpu->id;
}

/**
 * sl_switched - the task that sl_schedule() returned now runs
 * @cpu: this CPU
 * @prev: the task that ran before, its stack is free; NULL if the CPU was idle
 * @now_ns: its time is charged from here, not before it became runnable
 *
 * What choosing took is overhead; where it is short and a reading of the clock dear, a
 * host may count it as the task's.
 * Not called when sl_schedule() returned the task that was running. When it
 * returned NULL, called with @prev as the CPU reaches its idle loop.
 *
 * Context: on the CPU concerned, no lock held.
 */
void sl_switched(struct sl_cpu *cpu, struct sl_task *prev, u64 now_ns)
{
	struct sl_task *t = cpu->curr;

	if (SL_HOST_HAS_STACKS && prev && prev != t)
		smp_store_release(&prev->on_cpu, false);
	if (!t)
		return;
	WRITE_ONCE(t->exec_start_ns, now_ns);
	if (unlikely(t->last_cpu != cpu->id))
		account_migration(cpu, t);
	sl_host_record(SL_RECORD_RUN, t->p.pid, cpu->id, 0, t->from_dsq_id);
	t->from_dsq_id = 0;
}

/**
 * sl_tick - the periodic timer interrupt
 * @cpu: this CPU
 * @now_ns: the running task is charged until then
 * @late_ns: what may be left of a slice that counts as used up: a turn that began because
 *	of a tick began late by what the interrupt and the switch took
 *
 * S15: charges the running task, asks ops.tick(); if the slice is used up, the
 * CPU must schedule.
 *
 * Context: on the CPU concerned, no lock held.
 * Return: whether the host must now call sl_schedule(SL_WHY_RESCHED).
 */
bool sl_tick(struct sl_cpu *cpu, u64 now_ns, u64 late_ns)
{
	struct sl_task *t;
	bool is_over = false;

	sl_lock(&cpu->lock);
	cpu->holds_lock = true;
	cpu->in_interrupt = true;
	t = cpu->curr;
	if (t) {
		charge(t, now_ns);
		if (sl_is_bypassed())
			sl_set_slice(t, 0);
		else
			SL_CALL_OP(cpu, tick, t, &t->p);
		if (sl_slice(t) <= late_ns)
			sl_set_slice(t, 0);
		is_over = !sl_slice(t);
	}
	cpu->holds_lock = false;
	sl_unlock(&cpu->lock);
	flush(cpu);
	cpu->in_interrupt = false;
	return is_over;
}

/**
 * sl_cpu_take - a task of a higher scheduling class runs on @cpu from now on
 * @cpu: this CPU
 * @now_ns: the running task, if there is one, is charged until then
 *
 * S46: what ran waits at the head of the local queue if it has slice left, and is
 * enqueued otherwise; then ops.cpu_release() is called. An idle CPU was not the policy's
 * to release. No sl_schedule() comes until sl_cpu_give_back(), right after which one does.
 *
 * Context: on the CPU concerned, no lock held.
 */
void sl_cpu_take(struct sl_cpu *cpu, u64 now_ns)
{
	struct scx_cpu_release_args args = { .reason = SCX_CPU_PREEMPT_RT, .task = &cpu->idle.p };
	struct sl_task *t = cpu->curr;

	sl_lock(&cpu->lock);
	cpu->holds_lock = true;
	cpu->is_scheduling = cpu->has_higher = true;
	if (unlikely(READ_ONCE(sl_core.uses_immed)))
		check_immed(cpu);
	if (t) {
		charge(t, now_ns);
		SL_CALL_OP(cpu, stopping, t, &t->p, true);
		account_stop(cpu, t, SL_STOP_PREEMPTED);
		set_runnable_at(t, now_ns);
		smp_store_release(&t->state, SL_TASK_RUNNABLE);
		if (unlikely(sl_slice(t) && !sl_is_bypassed() &&
			     (t->p.scx.flags & SCX_TASK_IMMED))) {
			t->p.scx.flags |= SCX_TASK_REENQ_PREEMPTED;
			do_enqueue_task(cpu, cpu, t, SCX_ENQ_REENQ);
		} else if (sl_slice(t) && !sl_is_bypassed()) {
			local_dsq_enqueue(cpu, t, SCX_ENQ_HEAD);
		} else {
			do_enqueue_task(cpu, cpu, t, 0);
		}
		smp_store_release(&cpu->curr, NULL);
	} else {
		cpu->idle_ns += now_ns - cpu->idle_since_ns;
		update_idle(cpu, false, true);
	}
	cpu->is_taken = true;
	cpu->is_released = t;
	if (t)
		SL_CALL_OP(cpu, cpu_release, NULL, cpu->id, &args);
	if (unlikely(cpu->must_reenqueue_released)) {
		cpu->must_reenqueue_released = false;
		reenqueue_released(cpu, t);
	}
	cpu->is_scheduling = false;
	cpu->holds_lock = false;
	sl_unlock(&cpu->lock);
	flush(cpu);
}

/* The higher class needs @cpu no more. Context: on that CPU, no lock held. */
void sl_cpu_give_back(struct sl_cpu *cpu)
{
	struct scx_cpu_acquire_args args = { };

	sl_lock(&cpu->lock);
	cpu->holds_lock = true;
	cpu->has_higher = false;
	if (cpu->is_released)
		SL_CALL_OP(cpu, cpu_acquire, NULL, cpu->id, &args);
	cpu->holds_lock = false;
	sl_unlock(&cpu->lock);
	flush(cpu);
}

/**
 * sl_stop_at_horizon - the run is over, and whatever @cpu does goes on no more
 * @cpu: any; it is in the core no more
 *
 * Charges the running task and writes its last record, or accounts for idle time.
 */
void sl_stop_at_horizon(struct sl_cpu *cpu, u64 now_ns)
{
	if (!cpu->curr) {
		if (!cpu->is_taken)
			cpu->idle_ns += now_ns - cpu->idle_since_ns;
		cpu->idle_since_ns = now_ns;
		return;
	}
	charge(cpu->curr, now_ns);
	sl_host_record(SL_RECORD_STOP, cpu->curr->p.pid, cpu->id, SL_STOP_HORIZON,
		       cpu->curr->charged_ns);
}

/* The host has charged @t, or wants it to be preempted: no notice to the host. */
void sl_task_set_slice(struct sl_task *t, u64 slice_ns)
{
	sl_set_slice(t, slice_ns);
}

/* Charge what @t has run until @until_ns, now or earlier; not if it does not run. */
void sl_task_charge(struct sl_task *t, u64 until_ns)
{
	struct sl_cpu *cpu = &sl_core.cpus[READ_ONCE(t->cpu)];

	sl_lock(&cpu->lock);
	if (cpu->curr == t)
		charge(t, until_ns);
	sl_unlock(&cpu->lock);
}

/*
 * From now on, for @stolen_ns, the CPU is not the running task's: what was charged so
 * far stays, and what follows begins that much later. Context: a machine whose CPUs
 * take turns.
 */
void sl_task_steal(struct sl_task *t, u64 stolen_ns)
{
	WRITE_ONCE(t->exec_start_ns, t->exec_start_ns + stolen_ns);
}
