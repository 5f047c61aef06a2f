/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S5: queues everything in one place, kicks no CPU. */
#include "conform.h"

#define QUEUE 7

/* CPU that select_cpu names for all tasks but the hog: new ones, and those that wake up. */
const volatile s32 target = 1;
const volatile s32 woken_target = 1;
/* Where a task that wakes up is put: 0: a user queue; 1: the global one; 2: CPU 1's. */
const volatile u64 place = 0;

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	if (is_named(p, 'h'))
		return 0;
	return wake_flags & SCX_WAKE_FORK ? target : woken_target;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 queue = QUEUE;

	if (!is_named(p, 'h') && enq_flags & SCX_ENQ_WAKEUP && place)
		queue = place == 1 ? SCX_DSQ_GLOBAL : SCX_DSQ_LOCAL_ON | 1;
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

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu,
	       .enqueue = (void *)t_enqueue, .dispatch = (void *)t_dispatch,
	       .init = (void *)t_init, .name = "t");
