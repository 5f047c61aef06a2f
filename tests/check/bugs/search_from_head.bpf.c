/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * search_from_head.bpf.c - four queues in turn, but each search begins at the first.
 *
 * @breaks stall
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, NUMBERED + p->pid % 4, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 i;

	bpf_for(i, 0, 4)
		if (scx_bpf_dsq_move_to_local(NUMBERED + i, 0))
			return;
}

#define NR_SHARED 0
#define NR_NUMBERED 4
#include "bug_ops.h"
