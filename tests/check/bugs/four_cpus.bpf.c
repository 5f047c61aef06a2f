/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * four_cpus.bpf.c - queues for four CPUs, whatever the machine has.
 *
 * @breaks error
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, NUMBERED + scx_bpf_task_cpu(p), SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 i;

	if (cpu < 4 && scx_bpf_dsq_move_to_local(NUMBERED + cpu, 0))
		return;
	bpf_for(i, 0, 4)
		if (scx_bpf_dsq_move_to_local(NUMBERED + i, 0))
			return;
}

#define NR_SHARED 0
#define NR_NUMBERED 4
#include "bug_ops.h"
