/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S2: a FIFO queue keeps the order of insertion; HEAD goes to its front. */
#include "conform.h"

#define QUEUE 7

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (is_named(p, 'c'))
		enq_flags |= SCX_ENQ_HEAD;
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

/* What creating and asking returns where it cannot succeed. */
s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	s32 err = scx_bpf_create_dsq(QUEUE, -1);
	s32 exists = scx_bpf_create_dsq(QUEUE, -1);
	s32 builtin = scx_bpf_create_dsq(SCX_DSQ_GLOBAL, -1);
	s32 unknown = scx_bpf_dsq_nr_queued(8);
	s32 empty = scx_bpf_dsq_nr_queued(QUEUE);

	TELL(exists);
	TELL(builtin);
	TELL(unknown);
	TELL(empty);
	return err;
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .init = (void *)t_init,
	       .name = "t");
