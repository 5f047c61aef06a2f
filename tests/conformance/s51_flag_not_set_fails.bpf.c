/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S51: idle CPUs by node are an error without SCX_OPS_BUILTIN_IDLE_PER_NODE. */
#include "conform.h"

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_pick_idle_cpu_node(p->cpus_ptr, 0, 0);

	if (cpu != -EOPNOTSUPP)
		scx_bpf_error("CPU %d", cpu);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .name = "t");
