/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S26: claims a CPU that there is not. */
#include "conform.h"

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
	if (is_named(p, 'b'))
		scx_bpf_test_and_clear_cpu_idle(77);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .name = "t");
