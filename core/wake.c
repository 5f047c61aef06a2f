/* SPDX-License-Identifier: MIT */
/*
 * wake.c - tasks becoming runnable: new ones, and those woken.
 *
 *	claim the task -> select_cpu (no lock) -> lock that CPU -> runnable,
 *	enqueue -> wake the CPU if it is idle -> unlock -> flush
 *
 * Called by hosts, from any CPU. A wake-up and the task's own way into
 * sl_schedule(SL_WHY_BLOCK) meet under the lock of the task's CPU, so none is
 * lost: the second of the two sees what the first did.
 *
 * Read next: change.c.
 */
#include "core.h"

/*
 * Lock the CPU whose lock protects @t, and say in @state what @t is doing.
 *
 * The CPU may change until it is held, and for a task on a shared queue even
 * then: another CPU takes it from there under that queue's lock and its own. So
 * the state is read before the CPU is compared. A task cannot come back to a
 * CPU whose lock is held: if it is there afterwards, it was there all the time.
 * RUNNABLE is the one answer that may be out of date at once.
 */
static struct sl_cpu *lock_cpu_of(struct sl_task *t, u8 *state)
{
	for (;;) {
		s32 nr = READ_ONCE(t->cpu);
		struct sl_cpu *cpu = &sl_core.cpus[nr];

		sl_lock(&cpu->lock);
		*state = smp_load_acquire(&t->state);
		if (likely(READ_ONCE(t->cpu) == nr))
			return cpu;
		sl_unlock(&cpu->lock);
	}
}

/*
 * The first CPU where @t may run and that is online. Where there is none, its affinity is
 * no more, as on Linux (S47): it may run where its cgroup is configured to (S49), and if none of
 * these is online either, everywhere. Context: no lock held.
 */
static __noinline s32 select_fallback_cpu(struct sl_task *t)
{
	const struct cpumask *mask = configured_cpus(t->p.cgroups->dfl_cgrp);

	for (u32 nr_tries = 0; nr_tries < 3; nr_tries++) {
		for (s32 i = 0; i < (s32)sl_core.nr_cpus; i++) {
			if (is_cpu_allowed(t, i))
				return i;
		}
		WRITE_ONCE(t->user_mask, NULL);
		set_mask(t, mask, bpf_cpumask_weight(mask));
		SL_CALL_OP(sl_this_cpu(), set_cpumask, t, &t->p, mask);
		mask = &sl_core.possible;
	}
	SL_ASSERT(!"a task that may run nowhere");
	return 0;
}

/* @preferred if @t may run there, otherwise another CPU. */
static s32 any_allowed_cpu(struct sl_task *t, s32 preferred)
{
	return likely(sl_may_run_on(t, preferred)) ? preferred : select_fallback_cpu(t);
}

/* Lock CPU @nr, which was chosen for @t, or another one where that is offline. */
static struct sl_cpu *lock_online(struct sl_task *t, s32 nr)
{
	struct sl_cpu *cpu = &sl_core.cpus[nr];

	sl_lock(&cpu->lock);
	while (unlikely(cpu->is_offline)) {
		sl_unlock(&cpu->lock);
		cpu = &sl_core.cpus[select_fallback_cpu(t)];
		sl_lock(&cpu->lock);
	}
	return cpu;
}

/* No ops.select_cpu(): an idle CPU, and then that CPU's local queue (S16). */
static __noinline s32 select_cpu_without_op(struct sl_task *t, s32 prev_cpu, u64 wake_flags)
{
	s32 cpu = select_cpu_default(t, prev_cpu, wake_flags, NULL, 0);

	if (cpu < 0)
		return prev_cpu;
	/* A policy that is just beginning may have it, and not be asked yet. */
	if (!sl_is_bypassed() && !SL_OP(select_cpu)) {
		refill_task_slice_dfl(sl_this_cpu(), t);
		t->p.scx.ddsp_dsq_id = SCX_DSQ_LOCAL;
		t->p.scx.ddsp_enq_flags = 0;
	}
	return cpu;
}

/*
 * S16: select_cpu is asked about a task that can run on several CPUs; its
 * answer is a hint, and what it inserted is placed when the task is enqueued.
 */
static s32 select_task_cpu(struct sl_cpu *this_cpu, struct sl_task *t, u64 wake_flags,
			   u64 *enq_flags)
{
	s32 prev_cpu, cpu;

	if (unlikely(READ_ONCE(t->p.migration_disabled)))
		return t->cpu;
	prev_cpu = any_allowed_cpu(t, t->cpu);
	if (t->p.nr_cpus_allowed == 1)
		return prev_cpu;
	/* A new task's enqueue is not told of it: wake_up_new_task() does not pass it on. */
	if (likely(!(wake_flags & SCX_WAKE_FORK)))
		*enq_flags |= SCX_ENQ_CPU_SELECTED;
	/* No lock is held: a policy that has just come has brought its operations. */
	if (unlikely(!SL_IS_ASKED(smp_load_acquire(&sl_core.asked), select_cpu)))
		return select_cpu_without_op(t, prev_cpu, wake_flags);
	this_cpu->direct_task = t;
	cpu = SL_CALL_RET(this_cpu, SL_OP(select_cpu), select_cpu, t, &t->p, prev_cpu, wake_flags);
	this_cpu->direct_task = NULL;
	t->p.scx.selected_cpu = cpu;
	/* Its affinity stays as it is while it is WAKING. */
	if (likely(cpu == prev_cpu))
		return cpu;
	if (unlikely((u32)cpu >= sl_core.nr_cpus)) {
		scx_error(t, "invalid CPU %d from ops.select_cpu() for %s[%d]", cpu, t->p.comm,
			  t->p.pid);
		return prev_cpu;
	}
	if (unlikely(!sl_may_run_on(t, cpu))) {
		sl_event(this_cpu, SELECT_CPU_FALLBACK);
		return any_allowed_cpu(t, cpu);
	}
	return cpu;
}

/**
 * make_runnable - put a claimed task onto a CPU
 * @this_cpu: the caller's
 * @cpu: where; its lock, and no other, is held
 * @t: not queued, claimed by the caller
 * @was_runnable: S18: it only changes its CPU, and has been runnable all the time
 * @enq_flags: SCX_ENQ_*
 *
 * S5: an idle CPU is woken, wherever the policy queued the task.
 */
static void make_runnable(struct sl_cpu *this_cpu, struct sl_cpu *cpu, struct sl_task *t,
			  bool was_runnable, u64 enq_flags)
{
	this_cpu->holds_lock = true;
	WRITE_ONCE(t->cpu, cpu->id);
	smp_store_release(&t->state, SL_TASK_RUNNABLE);
	t->is_blocking = false;
	if (!was_runnable) {
		t->p.scx.flags |= SCX_TASK_QUEUED;
		SL_CALL_OP(this_cpu, runnable, t, &t->p, enq_flags);
	}
	do_enqueue_task(this_cpu, cpu, t, enq_flags);
	/* On its local queue: local_dsq_enqueue() has done it. */
	if (!cpu->curr && !cpu->is_scheduling && READ_ONCE(t->dsq) != &cpu->local)
		sl_host_kick(cpu->id);
	this_cpu->holds_lock = false;
}

/* @kind and @origin_pid: the record of how it came to be runnable; new: @born_ns. */
static void select_and_enqueue(struct sl_cpu *this_cpu, struct sl_task *t, u64 wake_flags,
			       u64 enq_flags, enum sl_record_kind kind, s32 origin_pid, u64 born_ns)
{
	struct sl_cpu *cpu;
	u64 now_ns;

	sl_host_prefetch(READ_ONCE(this_cpu->last_dsq));
	/* S39: a waker that is no task is an interrupt. */
	this_cpu->in_interrupt = !origin_pid;
	cpu = lock_online(t, select_task_cpu(this_cpu, t, wake_flags, &enq_flags));
	/* It is born at the moment it becomes runnable. */
	now_ns = kind == SL_RECORD_ARRIVE ? born_ns : sl_host_now_ns();
	set_runnable_at(t, now_ns);
	sl_host_record(kind, t->p.pid, cpu->id, 0, (u64)origin_pid);
	make_runnable(this_cpu, cpu, t, false, enq_flags);
	sl_unlock(&cpu->lock);
	flush(this_cpu);
	this_cpu->in_interrupt = false;
}

/**
 * sl_task_start - a new task becomes runnable for the first time
 * @this_cpu: the caller's
 * @t: attached, never started
 * @wake_flags: SCX_WAKE_FORK; or SCX_WAKE_TTWU for a task that was there before,
 *	asleep: to the policy that is a wake-up, and not the start of a task
 * @origin_pid: its parent, or the waker; 0: the host, a timer or device
 */
void sl_task_start(struct sl_cpu *this_cpu, struct sl_task *t, u64 wake_flags, s32 origin_pid)
{
	u64 enq_flags = wake_flags & SCX_WAKE_TTWU ? SCX_ENQ_WAKEUP : 0;
	struct sl_cpu *cpu;
	u64 born_ns;
	u8 state;

	SL_ASSERT(t->is_attached);
	/* Under the lock, as a wake-up: see attach_to_policy(). */
	cpu = lock_cpu_of(t, &state);
	SL_ASSERT(state == SL_TASK_NEW);
	smp_store_release(&t->state, SL_TASK_WAKING);
	sl_unlock(&cpu->lock);
	born_ns = sl_host_now_ns();
	t->p.start_time = policy_time_ns(born_ns);
	select_and_enqueue(this_cpu, t, wake_flags, enq_flags, SL_RECORD_ARRIVE, origin_pid,
			   born_ns);
}

/**
 * sl_task_wake - wake a task
 * @this_cpu: the caller's
 * @t: any task; waking one that neither blocks nor is about to does nothing
 * @wake_flags: SCX_WAKE_SYNC or 0
 * @waker_pid: for the record; 0: a timer or device
 *
 * The time is read after the task is claimed: before, it may still have run.
 *
 * Context: no lock held.
 * Return: whether the call made a difference.
 */
__flatten bool sl_task_wake(struct sl_cpu *this_cpu, struct sl_task *t, u64 wake_flags,
			    s32 waker_pid)
{
	u8 state;
	struct sl_cpu *cpu = lock_cpu_of(t, &state);
	bool was_blocked = state == SL_TASK_BLOCKED;
	bool was_blocking = state == SL_TASK_RUNNING && t->is_blocking;

	if (was_blocked) {
		WRITE_ONCE(t->p.__state, 0);
		smp_store_release(&t->state, SL_TASK_WAKING);
	} else if (was_blocking)
		t->is_blocking = false;
	sl_unlock(&cpu->lock);
	if (!was_blocked)
		return was_blocking;
	select_and_enqueue(this_cpu, t, wake_flags | SCX_WAKE_TTWU, SCX_ENQ_WAKEUP, SL_RECORD_WAKE,
			   waker_pid, 0);
	return true;
}

/**
 * sl_task_prepare_block - the running task announces that it will block
 * @cpu: this CPU; a running task migrates nowhere, so its lock is the task's
 * @t: the task that runs on it
 *
 * Comes before the task becomes visible to its wakers. A wake-up
 * after this, and before sl_schedule(SL_WHY_BLOCK), keeps it from blocking. So does
 * a preemption in between: the task looks again whether it has to wait.
 */
void sl_task_prepare_block(struct sl_cpu *cpu, struct sl_task *t)
{
	sl_lock(&cpu->lock);
	SL_ASSERT(cpu->curr == t);
	t->is_blocking = true;
	sl_unlock(&cpu->lock);
}
