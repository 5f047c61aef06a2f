/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S25: nothing but the default choice of a CPU. */
#include "conform.h"

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
	return cpu;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_INF, enq_flags);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu,
	       .enqueue = (void *)t_enqueue, .name = "t");
