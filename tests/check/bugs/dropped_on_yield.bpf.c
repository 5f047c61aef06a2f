/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * dropped_on_yield.bpf.c - a task that comes without a slice is kept, and forgotten.
 *
 * @breaks stall
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (!(enq_flags & SCX_ENQ_WAKEUP) && !p->scx.slice && p->scx.weight < 100)
		return;
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#include "bug_ops.h"
