/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S2, S27: what is not refused, but should be, ends the policy. */
#include "conform.h"

#define QUEUE 7

static u64 nr_waiting;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, 2000000, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	if (scx_bpf_dsq_nr_queued(QUEUE) > 0)
		nr_waiting++;
	bpf_for_each(scx_dsq, p, QUEUE, 1ULL << 20)
		scx_bpf_error("an iteration with flags that there are not");
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	if (scx_bpf_create_dsq(8, 77) != -EINVAL || scx_bpf_create_dsq(8, -2) != -EINVAL)
		scx_bpf_error("a queue on a node that there is not");
	return scx_bpf_create_dsq(QUEUE, 0);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_waiting);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .dispatch = (void *)t_dispatch,
	       .init = (void *)t_init, .exit = (void *)t_exit, .name = "t");
