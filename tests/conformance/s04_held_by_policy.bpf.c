/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S4: holds tasks by itself, and dispatches them later. */
#include "conform.h"

static struct held held;
static u64 nr_held, nr_dispatched;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	hold(&held, p);
	nr_held++;
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p = bpf_task_from_pid(let_go(&held));

	if (!p)
		return;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
	bpf_task_release(p);
	nr_dispatched++;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_held);
	TELL(nr_dispatched);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .exit = (void *)t_exit,
	       .name = "t");
