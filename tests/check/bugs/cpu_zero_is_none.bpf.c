/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * cpu_zero_is_none.bpf.c - 0 stands for "no CPU" in the place of a task's queue, and is a CPU.
 *
 * @breaks stall
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
	s32 cpu = scx_bpf_task_cpu(p);

	scx_bpf_dsq_insert(p, NUMBERED + cpu, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 i, fullest = 0;

	bpf_for(i, 0, 64)
		if (scx_bpf_dsq_nr_queued(NUMBERED + i) >
		    (fullest ? scx_bpf_dsq_nr_queued(NUMBERED + fullest) : 0))
			fullest = i;
	if (fullest && scx_bpf_dsq_move_to_local(NUMBERED + fullest, 0))
		return;
	bpf_for(i, 1, 64)
		if (scx_bpf_dsq_move_to_local(NUMBERED + i, 0))
			return;
}

#define NR_SHARED 0
#define NR_NUMBERED 64
#include "bug_ops.h"
