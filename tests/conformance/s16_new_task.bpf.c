/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S16: enqueue of a new task is not told that select_cpu was asked: such a task goes to CPU 1. */
#include "conform.h"

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return 0;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 dsq_id = SCX_DSQ_LOCAL;

	if (p->nr_cpus_allowed > 1 && !(enq_flags & SCX_ENQ_CPU_SELECTED))
		dsq_id = SCX_DSQ_LOCAL_ON | 1;
	scx_bpf_dsq_insert(p, dsq_id, SCX_SLICE_INF, 0);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu,
	       .enqueue = (void *)t_enqueue, .name = "t");
