/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S2: inserts with a flag that is the kernel's own. */
#include "conform.h"

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL,
			   is_named(p, 'b') ? 1ULL << 57 : enq_flags);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .timeout_ms = 1000, .name = "t");
