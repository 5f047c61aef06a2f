/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S7: dispatch puts a task into the global queue, after a task that blocked with most
 * of its slice left: that slice is nothing to the CPU, which looks into the queue.
 */
#include "conform.h"

static struct held held;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	hold(&held, p);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p = bpf_task_from_pid(let_go(&held));

	if (!p)
		return;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_INF, 0);
	bpf_task_release(p);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .name = "t");
