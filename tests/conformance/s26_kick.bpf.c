/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S26: task u is queued behind the hog, and CPU 0 kicked; the flags are a knob. */
#include "conform.h"

#define QUEUE 7

const volatile u64 flags = 0;
static u64 nr_asked_too_early;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags);
	if (is_named(p, 'u'))
		scx_bpf_kick_cpu(0, flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED) && prev->scx.slice)
		nr_asked_too_early++;
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_asked_too_early);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .init = (void *)t_init,
	       .exit = (void *)t_exit, .name = "t");
