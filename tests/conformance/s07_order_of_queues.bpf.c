/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S7: one task in the local, one in the global, one in a user queue. */
#include "conform.h"

#define QUEUE 7

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 queue = is_named(p, 'l') ? SCX_DSQ_LOCAL : is_named(p, 'g') ? SCX_DSQ_GLOBAL : QUEUE;

	scx_bpf_dsq_insert(p, queue, SCX_SLICE_INF, enq_flags);
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
