/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S14: ops.yield ends every second slice. */
#include "conform.h"

static u64 nr_yield;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_INF, enq_flags);
}

bool BPF_STRUCT_OPS(t_yield, struct task_struct *from, struct task_struct *to)
{
	if (nr_yield++ % 2)
		scx_bpf_task_set_slice(from, 0);
	return true;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_yield);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .yield = (void *)t_yield,
	       .exit = (void *)t_exit, .name = "t");
