/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * looks_twice.bpf.c - of two queues the one with the older task is taken, but one is compared with itself.
 *
 * @breaks stall
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, p->scx.weight < 100 ? OTHER : SHARED, SCX_SLICE_DFL,
				 scx_bpf_now(), enq_flags);
	kick_idle_for(p);
}

static u64 oldest_in(u64 queue)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue, 0)
		return p->scx.dsq_vtime;
	return -1ULL;
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 shared = oldest_in(SHARED), other = oldest_in(SHARED);

	if (shared <= other && scx_bpf_dsq_move_to_local(SHARED, 0))
		return;
	if (!scx_bpf_dsq_move_to_local(OTHER, 0))
		scx_bpf_dsq_move_to_local(SHARED, 0);
}

#define NR_SHARED 2
#include "bug_ops.h"
