/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S12: what happens to the only task of a CPU when its slice ends. */
#include "conform.h"

#define QUEUE 7

/* Where the last task is put, 0: the local queue; whether its CPU is told. */
const volatile u64 queue = 0;
const volatile u64 kick = 0;
static u64 nr_enqueue, nr_last;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	nr_enqueue++;
	if (enq_flags & SCX_ENQ_LAST)
		nr_last++;
	scx_bpf_dsq_insert(p, queue ?: SCX_DSQ_LOCAL, 2000000, enq_flags);
	if (kick)
		scx_bpf_kick_cpu(0, 0);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_enqueue);
	TELL(nr_last);
}

#ifndef OPS_FLAGS
#define OPS_FLAGS 0
#endif

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .init = (void *)t_init,
	       .exit = (void *)t_exit, .flags = OPS_FLAGS,
	       .timeout_ms = 1000, .name = "t");
