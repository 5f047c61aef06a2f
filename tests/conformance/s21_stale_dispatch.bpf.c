/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S21: at every dispatch, names every task there is, whoever has it. */
#include "conform.h"

static u64 nr_waiting;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	nr_waiting++;
}

void BPF_STRUCT_OPS(t_dequeue, struct task_struct *p, u64 deq_flags)
{
	nr_waiting--;
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	/* Naming tasks that cannot be had, again and again, is a busy wait. */
	if (!nr_waiting)
		return;
	for (s32 pid = 1; pid <= 4; pid++) {
		struct task_struct *p = bpf_task_from_pid(pid);

		if (!p)
			continue;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 2000000, 0);
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 2000000, 0);
		bpf_task_release(p);
	}
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dequeue = (void *)t_dequeue,
	       .dispatch = (void *)t_dispatch, .name = "t");
