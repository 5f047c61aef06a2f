/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S2: a vtime queue runs the smallest key first, equal keys as they came. */
#include "conform.h"

#define QUEUE 7

/* The weight is the key, so that the task set says the order. */
void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, QUEUE, SCX_SLICE_INF, (u64)p->scx.weight - 1000, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .init = (void *)t_init,
	       .name = "t");
