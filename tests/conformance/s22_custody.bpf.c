/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S22: counts how often a task comes into the policy's hands, and leaves them. */
#include "conform.h"

#define QUEUE 7

/* What enqueue does: 0 holds, 1 user queue, 2 local queue, 3 global queue. */
const volatile u64 how = 0;
static struct held held;
static u64 nr_enqueue, nr_dequeue, nr_flags;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	nr_enqueue++;
	if (how == 0)
		hold(&held, p);
	else
		scx_bpf_dsq_insert(p,
				   how == 1 ? QUEUE :
				   how == 2 ? SCX_DSQ_LOCAL :
					      SCX_DSQ_GLOBAL,
				   2000000, enq_flags);
}

void BPF_STRUCT_OPS(t_dequeue, struct task_struct *p, u64 deq_flags)
{
	nr_dequeue++;
	nr_flags |= deq_flags;
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	if (how == 1)
		scx_bpf_dsq_move_to_local(QUEUE);
	if (how != 0)
		return;
	p = bpf_task_from_pid(let_go(&held));
	if (!p)
		return;
	/* By way of a user queue: still one stay in the policy's hands. */
	scx_bpf_dsq_insert(p, QUEUE, 2000000, 0);
	bpf_task_release(p);
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_enqueue);
	TELL(nr_dequeue);
	TELL(nr_flags);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dequeue = (void *)t_dequeue, .dispatch = (void *)t_dispatch,
	       .init = (void *)t_init, .exit = (void *)t_exit, .name = "t");
