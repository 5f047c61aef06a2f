/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S8: dispatch gives task a another slice, and looks for it in the queue. With
 * ENQ_LAST nobody stays without being given one.
 */
#include "conform.h"

#define QUEUE 7

static u64 nr_renewed, nr_seen;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, 2000000, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, QUEUE, 0) {
		if (prev && p->pid == prev->pid)
			nr_seen++;
	}
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED) &&
	    (is_named(prev, 'a') || !scx_bpf_dsq_nr_queued(QUEUE))) {
		scx_bpf_task_set_slice(prev, 2000000);
		nr_renewed++;
		return;
	}
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_renewed);
	TELL(nr_seen);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .init = (void *)t_init,
	       .exit = (void *)t_exit, .flags = SCX_OPS_ENQ_LAST, .name = "t");
