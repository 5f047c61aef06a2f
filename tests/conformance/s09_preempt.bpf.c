/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S9: task u is inserted with PREEMPT. */
#include "conform.h"

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (is_named(p, 'u'))
		enq_flags |= SCX_ENQ_PREEMPT;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .name = "t");
