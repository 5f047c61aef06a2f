/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S29: forgets task b; the watchdog may wait one second. */
#include "conform.h"

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (!is_named(p, 'b'))
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 5000000, enq_flags);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .timeout_ms = 1000,
	       .name = "t");
