/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * weight_is_rank.bpf.c - the heavier task always goes first.
 *
 * @breaks stall
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, SHARED, SCX_SLICE_DFL, 10000 - p->scx.weight, enq_flags);
	kick_idle_for(p);
}

#include "bug_ops.h"
