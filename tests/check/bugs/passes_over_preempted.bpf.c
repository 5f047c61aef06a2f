/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * passes_over_preempted.bpf.c - tasks are to run in the order in which they were queued; those whose slice was
 * used up have a queue of their own, which every fourth choice begins with.
 *
 * @breaks priority
 * @priority queued when free
 */
#include "bug.h"

#define NR_SHARED 2

static u64 nr_choices;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 queue = enq_flags & SCX_ENQ_WAKEUP ? SHARED : OTHER;

	scx_bpf_dsq_insert(p, queue, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	bool is_others_turn = !(__sync_fetch_and_add(&nr_choices, 1) & 3);

	if (!scx_bpf_dsq_move_to_local(is_others_turn ? OTHER : SHARED, 0))
		scx_bpf_dsq_move_to_local(is_others_turn ? SHARED : OTHER, 0);
}

#include "bug_ops.h"
