/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * exits_not_queued.bpf.c - a task that exits is not queued any more; it may be preempted before it has.
 *
 * @breaks stall
 * @shown-by exit
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (p->flags & PF_EXITING)
		return;
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define MORE_OPS .flags = SCX_OPS_ENQ_EXITING,

#include "bug_ops.h"
