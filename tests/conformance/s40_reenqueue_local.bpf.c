/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S40: what waits in the local queue is enqueued anew at a tick, last come first. */
#include "conform.h"

#define QUEUE 7

static u64 nr_reenqueued, nr_asked, nr_inserted_again;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	bool is_again = enq_flags & SCX_ENQ_REENQ;

	nr_reenqueued += is_again;
	/* The one that came first goes where it was: it is not enqueued a third time. */
	if (is_again && is_named(p, 'a')) {
		nr_inserted_again++;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
	} else if (is_again) {
		scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, SCX_ENQ_HEAD);
	} else {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
	}
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

void BPF_STRUCT_OPS(t_tick, struct task_struct *p)
{
	if (!is_named(p, 'h') || nr_asked || scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) < 3)
		return;
	nr_asked++;
	scx_bpf_reenqueue_local();
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_reenqueued);
	TELL(nr_inserted_again);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .tick = (void *)t_tick,
	       .init = (void *)t_init, .exit = (void *)t_exit, .name = "t");
