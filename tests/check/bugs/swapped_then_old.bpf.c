/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * swapped_then_old.bpf.c - the two arrays of an epoch are swapped, and the one that was empty is searched.
 *
 * @breaks work
 * @work-conserving yes  so it says
 */
#include "bug.h"

static u32 active;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SHARED + !active, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 old = active;

	if (scx_bpf_dsq_move_to_local(SHARED + old, 0))
		return;
	active = !active;
	scx_bpf_dsq_move_to_local(SHARED + old, 0);
}

#define NR_SHARED 2
#include "bug_ops.h"
