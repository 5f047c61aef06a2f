/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * urgent_always_first.bpf.c - tasks that wake up are always taken before those that were preempted.
 *
 * @breaks stall
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define URGENT 2

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, enq_flags & SCX_ENQ_WAKEUP ? URGENT : SHARED, SCX_SLICE_DFL,
			   enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(URGENT, 0))
		scx_bpf_dsq_move_to_local(SHARED, 0);
}

#define NR_SHARED 2
#include "bug_ops.h"
