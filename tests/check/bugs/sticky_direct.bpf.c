/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * sticky_direct.bpf.c - a task whose slice is used up stays on its CPU, ahead of the queue that all share.
 *
 * @breaks stall
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (!(enq_flags & SCX_ENQ_WAKEUP) && p->scx.weight > 100) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#include "bug_ops.h"
