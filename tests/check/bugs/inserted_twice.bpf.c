/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * inserted_twice.bpf.c - a task is queued once more where it has a weight of its own.
 *
 * @breaks error
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	if (p->scx.weight > 100)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#include "bug_ops.h"
