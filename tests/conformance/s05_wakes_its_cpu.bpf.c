/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S5: queues everything in a user queue, kicks nobody. */
#include "conform.h"

#define QUEUE 7

/* CPU that select_cpu names for everybody but the hog. */
const volatile s32 target = 1;

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu,
		   u64 wake_flags)
{
	return is_named(p, 'h') ? 0 : target;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu,
	       .enqueue = (void *)t_enqueue, .dispatch = (void *)t_dispatch,
	       .init = (void *)t_init, .name = "t");
