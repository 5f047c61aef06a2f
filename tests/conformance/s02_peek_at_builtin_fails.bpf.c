/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S2: looks for the first task of a queue that is not a policy's. */
#include "conform.h"

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (is_named(p, 'b') && !scx_bpf_dsq_peek(SCX_DSQ_GLOBAL))
		enq_flags |= SCX_ENQ_HEAD;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_INF, enq_flags);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .name = "t");
