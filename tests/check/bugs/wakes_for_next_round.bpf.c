/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * wakes_for_next_round.bpf.c - a task that wakes up is held back for seven slices of the others.
 *
 * @breaks latency
 * @knob slice_ns ns 1000000 1000000000  slice
 * @latency wake-up within slice_ns
 */
#include "bug.h"

#define NR_SHARED 2
#define NR_SLICES 7

const volatile u64 slice_ns = 20000000;
static u64 nr_slices;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, enq_flags & SCX_ENQ_WAKEUP ? OTHER : SHARED, slice_ns, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	if (__sync_fetch_and_add(&nr_slices, 1) % NR_SLICES == 0 &&
	    scx_bpf_dsq_move_to_local(OTHER, 0))
		return;
	if (scx_bpf_dsq_move_to_local(SHARED, 0))
		return;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED))
		scx_bpf_task_set_slice(prev, slice_ns);
	else
		scx_bpf_dsq_move_to_local(OTHER, 0);
}

#include "bug_ops.h"
