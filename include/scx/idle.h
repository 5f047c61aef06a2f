/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * idle.h - how a policy finds an idle CPU: for a task that wakes up, and for one
 * that joins a queue although no CPU was chosen for it.
 *
 * The first is asked in ops.select_cpu, the second in ops.enqueue; together they
 * leave no CPU idle beside a task that it may run, but for one that goes idle in the
 * moment between the search and the insertion, which no policy sees (S5).
 *
 * Read next: policies/rr.bpf.c, a small user; policies/fifo.bpf.c is the same
 * written out.
 */
#ifndef SCX_IDLE_H
#define SCX_IDLE_H

#include <scx/common.bpf.h>

/*
 * The CPU for a task that wakes up. *@is_idle: whether it is idle, and reserved for
 * the task. Without SCX_WAKE_SYNC: a waker that is about to block may run on all the
 * same, and the task would wait behind it although another CPU is idle now.
 */
static inline s32 select_idle_cpu(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle)
{
	*is_idle = false;
	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, is_idle);
}

/*
 * For queues in order of urgency: the CPU is only chosen, and the task is queued
 * even if it is idle, or it would pass a more urgent one that this CPU is about to
 * fetch.
 */
static inline s32 select_cpu_only(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle;

	return select_idle_cpu(p, prev_cpu, wake_flags, &is_idle);
}

/* An idle CPU gets the task at once, past ops.enqueue. */
static inline s32 select_cpu_and_insert(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
					u64 slice_ns)
{
	bool is_idle;
	s32 cpu = select_idle_cpu(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	return cpu;
}

/*
 * Wake an idle CPU for a task that was queued, unless ops.select_cpu has just looked
 * for one: the task was preempted, or yielded, or may run on this CPU only.
 * Return: whether there was an idle CPU.
 */
static inline bool kick_idle_cpu(struct task_struct *p, u64 enq_flags)
{
	s32 cpu;

	if (enq_flags & SCX_ENQ_CPU_SELECTED)
		return false;
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu < 0)
		return false;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return true;
}

/*
 * For queues in order of urgency: take the first task that may run here. It may be
 * another than the one for which this CPU was woken, and that one's CPU may find none
 * that it may run: what is left behind so is given an idle CPU. Return: whether a task was
 * taken. Context: ops.dispatch.
 */
static inline bool take_and_pass_on(u64 dsq_id, s32 cpu)
{
	bool is_taken = scx_bpf_dsq_move_to_local(dsq_id);
	const struct cpumask *idle;
	struct task_struct *p;
	bool is_any_idle;

	if (!scx_bpf_dsq_nr_queued(dsq_id))
		return is_taken;
	idle = scx_bpf_get_idle_cpumask();
	is_any_idle = !bpf_cpumask_empty(idle);
	scx_bpf_put_idle_cpumask(idle);
	if (!is_any_idle)
		return is_taken;
	bpf_for_each(scx_dsq, p, dsq_id, 0) {
		if (!is_taken || scx_bpf_task_cpu(p) == cpu)
			kick_idle_cpu(p, 0);
	}
	return is_taken;
}

#endif
