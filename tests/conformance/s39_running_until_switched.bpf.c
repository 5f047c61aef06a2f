/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S39: a preempted task is still its CPU's current one in its own ops.enqueue(). Those
 * that are go behind those that are not.
 */
#include "conform.h"

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, scx_bpf_task_running(p) ? 1 : 0, 1500000, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(0))
		scx_bpf_dsq_move_to_local(1);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	s32 err = scx_bpf_create_dsq(0, -1);

	return err ? err : scx_bpf_create_dsq(1, -1);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .init = (void *)t_init,
	       .name = "t");
