/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S10: a first turn is as long as the slice that the policy found, all others have no end. */
#include "conform.h"

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, p->scx.slice ? 0 : SCX_SLICE_INF, enq_flags);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .name = "t");
