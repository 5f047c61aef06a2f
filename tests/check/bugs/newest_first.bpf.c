/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * newest_first.bpf.c - a task that comes goes to the head of the queue.
 *
 * @breaks stall
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags | SCX_ENQ_HEAD);
	kick_idle_for(p);
}

#include "bug_ops.h"
