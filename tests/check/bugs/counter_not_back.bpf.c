/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * counter_not_back.bpf.c - a counter of queued tasks goes down where a CPU takes one, and not where the task
 * leaves the queue because it is changed: it tests another flag.
 *
 * @breaks invariant
 * @invariant n_queued == 0 when quiet
 */
#include "bug.h"

#define COUNTED SCX_DEQ_CORE_SCHED_EXEC	/* in place of SCX_DEQ_SCHED_CHANGE */

static s64 n_queued;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	__sync_fetch_and_add(&n_queued, 1);
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	if (scx_bpf_dsq_move_to_local(SHARED, 0))
		__sync_fetch_and_sub(&n_queued, 1);
}

void BPF_STRUCT_OPS(bug_dequeue, struct task_struct *p, u64 deq_flags)
{
	if (deq_flags & COUNTED)
		__sync_fetch_and_sub(&n_queued, 1);
}

#define MORE_OPS .dequeue = (void *)bug_dequeue,

#include "bug_ops.h"
