/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S37: calls from where Linux's verifier would not let it; which is a knob. */
#include "conform.h"

#define QUEUE 7

const volatile u64 what = 0;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (what == 1)
		scx_bpf_dsq_move_to_local(QUEUE);
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	struct task_struct *q;

	if (what == 0)
		scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, 0);
	if (what != 2)
		return;
	bpf_for_each(scx_dsq, q, QUEUE, 0)
		scx_bpf_dsq_move(BPF_FOR_EACH_ITER, q, QUEUE, 0);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .running = (void *)t_running,
	       .init = (void *)t_init, .name = "t");
