/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * global_in_vtime_order.bpf.c - tasks go to the global queue by virtual time, which it does not order by.
 *
 * @breaks error
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, p->scx.dsq_vtime, enq_flags);
}

#include "bug_ops.h"
