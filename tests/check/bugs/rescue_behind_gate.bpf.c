/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * rescue_behind_gate.bpf.c - a task that waits for long is rescued, behind a test that leaves early while others are urgent.
 *
 * @breaks stall
 * @work-conserving yes  so it says
 */
#include "bug.h"

static u64 rescued_at;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, p->scx.weight > 100 ? OTHER : SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 now = scx_bpf_now();

	if (scx_bpf_dsq_nr_queued(OTHER) && scx_bpf_dsq_move_to_local(OTHER, 0))
		return;
	if (now - rescued_at > 100000000 && scx_bpf_dsq_move_to_local(SHARED, 0)) {
		rescued_at = now;
		return;
	}
	scx_bpf_dsq_move_to_local(SHARED, 0);
}

#define NR_SHARED 2
#include "bug_ops.h"
