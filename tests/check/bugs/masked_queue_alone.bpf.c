/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * masked_queue_alone.bpf.c - a task with a mask waits in its CPU's own queue, where the others that it may run on do not look.
 *
 * @breaks work
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 n_cpus = scx_bpf_nr_cpu_ids();

	if (p->nr_cpus_allowed < n_cpus && p->nr_cpus_allowed > 1)
		scx_bpf_dsq_insert(p, NUMBERED + scx_bpf_task_cpu(p), SCX_SLICE_DFL, enq_flags);
	else
		scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_IDLE);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(NUMBERED + cpu, 0))
		scx_bpf_dsq_move_to_local(SHARED, 0);
}

#define NR_NUMBERED 64
#include "bug_ops.h"
