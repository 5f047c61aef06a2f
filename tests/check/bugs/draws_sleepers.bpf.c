/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * draws_sleepers.bpf.c - a lottery among all tasks: where all sleep, it is drawn again for ever.
 *
 * @breaks error
 * @work-conserving yes  so it says
 */
#include "bug.h"

static bool has_ticket;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	bool is_rich = p->scx.weight > 100 && p->nr_cpus_allowed == 2;

	has_ticket |= is_rich;
	scx_bpf_dsq_insert(p, is_rich ? OTHER : SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 winner = SHARED;

	while (!scx_bpf_dsq_move_to_local(winner, 0) && has_ticket)
		winner = SHARED + OTHER - winner;
}

#define NR_SHARED 2
#include "bug_ops.h"
