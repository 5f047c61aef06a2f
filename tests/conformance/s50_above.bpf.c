/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S50, S46: a higher class takes the CPU from a task that was promised to stay on it: it comes back. */
#include "conform.h"

#define QUEUE 7
#define REASON(p) ((p)->scx.flags >> 12 & 3)
#define REASON_PREEMPTED 3

static u64 nr_back;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (!(enq_flags & SCX_ENQ_REENQ)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, SCX_ENQ_IMMED);
		return;
	}
	if (is_named(p, 'a')) {
		nr_back++;
		if (REASON(p) != REASON_PREEMPTED)
			scx_bpf_error("%s comes back for reason %u", p->comm, REASON(p));
	}
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, 0);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	if (is_named(p, 'z') && !nr_back)
		scx_bpf_error("a has not come back");
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .running = (void *)t_running,
	       .init = (void *)t_init, .name = "t");
