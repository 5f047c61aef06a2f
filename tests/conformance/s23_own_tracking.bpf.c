/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S23: ops.update_idle without KEEP_BUILTIN_IDLE, and no select_cpu. */
#include "conform.h"

const volatile u64 ask = 0;
static u64 nr_update;

void BPF_STRUCT_OPS(t_update_idle, s32 cpu, bool idle)
{
	nr_update++;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (ask && scx_bpf_pick_idle_cpu(p->cpus_ptr, 0) >= 0)
		nr_update += 1000;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_update);
}

SCX_OPS_DEFINE(t_ops, .update_idle = (void *)t_update_idle,
	       .enqueue = (void *)t_enqueue, .exit = (void *)t_exit,
	       .name = "t");
