/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S24: claims CPU 1, kicks it, and gives it nothing to do. */
#include "conform.h"

static u64 nr_claimed, nr_asked;

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	nr_asked++;
	if (scx_bpf_test_and_clear_cpu_idle(1)) {
		nr_claimed++;
		scx_bpf_kick_cpu(1, SCX_KICK_IDLE);
	}
	return 0;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_asked);
	TELL(nr_claimed);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu,
	       .enqueue = (void *)t_enqueue, .exit = (void *)t_exit,
	       .name = "t");
