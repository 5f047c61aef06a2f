/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S17: a task that changes its priority to 9 is preempted at the next tick. */
#include "conform.h"
#include <scx/task_attr.h>

static s32 lowest_pid;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_attr *attr = task_attr(p);

	if (attr && attr->priority == 9)
		lowest_pid = p->pid;
}

void BPF_STRUCT_OPS(t_tick, struct task_struct *p)
{
	if (p->pid == lowest_pid)
		scx_bpf_task_set_slice(p, 0);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .runnable = (void *)t_runnable, .tick = (void *)t_tick,
	       .name = "t");
