/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * no_queue_chosen.bpf.c - the fullest of the queues is taken; where all are empty there is none, and its number is used.
 *
 * @breaks error
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OTHER 2

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, p->scx.weight > 100 ? OTHER : SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 id, most = 0;
	u64 queue = 0;

	bpf_for(id, SHARED, OTHER + 1)
		if (scx_bpf_dsq_nr_queued(id) > most) {
			most = scx_bpf_dsq_nr_queued(id);
			queue = id;
		}
	scx_bpf_dsq_move_to_local(queue, 0);
}

#define OWN_INIT
s32 BPF_STRUCT_OPS_SLEEPABLE(bug_init)
{
	s32 err = scx_bpf_create_dsq(SHARED, -1);

	return err ? err : scx_bpf_create_dsq(OTHER, -1);
}

#include "bug_ops.h"
