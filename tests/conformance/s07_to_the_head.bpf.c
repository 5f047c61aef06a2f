/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S7: moves all that waits to the local queue in one dispatch, each before the last one. */
#include "conform.h"

#define QUEUE 7

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 i;

	bpf_for(i, 0, 8) {
		if (!scx_bpf_dsq_move_to_local(QUEUE, SCX_ENQ_HEAD))
			break;
	}
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .dispatch = (void *)t_dispatch,
	       .init = (void *)t_init, .name = "t");
