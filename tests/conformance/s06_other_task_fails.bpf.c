/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S6: enqueue inserts the task it is about, no other. */
#include "conform.h"

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_struct *first = bpf_task_from_pid(1);

	scx_bpf_dsq_insert(first ?: p, SCX_DSQ_GLOBAL, SCX_SLICE_INF, enq_flags);
	if (first)
		bpf_task_release(first);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .name = "t");
