/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * no_queue_chosen.bpf.c - of two queues the next that is not empty is taken; where both are empty there is none, and its number is used.
 *
 * @breaks error
 */
#include "bug.h"

static u32 next_queue;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, p->scx.weight > 100 ? OTHER : SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 queue = 0;
	s32 i;

	next_queue = !next_queue;
	bpf_for(i, 0, 2)
		if (!queue && scx_bpf_dsq_nr_queued(SHARED + (next_queue ^ i)))
			queue = SHARED + (next_queue ^ i);
	scx_bpf_dsq_move_to_local(queue, 0);
}

#define NR_SHARED 2
#include "bug_ops.h"
