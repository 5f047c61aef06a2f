/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S2: inserts one task into a queue that was never created. */
#include "conform.h"

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, is_named(p, 'b') ? 0x63 : SCX_DSQ_GLOBAL, SCX_SLICE_INF, enq_flags);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .name = "t");
