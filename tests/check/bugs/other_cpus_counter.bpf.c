/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * other_cpus_counter.bpf.c - a counter of a CPU's queue goes up on the CPU of the task, and down on the one that takes it.
 *
 * @breaks stall
 * @work-conserving yes  so it says
 */
#include "bug.h"

static s32 n_queued[64];

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p) & 63;

	__sync_fetch_and_add(&n_queued[cpu], 1);
	scx_bpf_dsq_insert(p, NUMBERED + cpu, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 i, at;

	bpf_for(i, 0, 64) {
		at = (cpu + i) & 63;
		if (n_queued[at] <= 0 || !scx_bpf_dsq_move_to_local(NUMBERED + at, 0))
			continue;
		__sync_fetch_and_add(&n_queued[cpu & 63], -1);
		return;
	}
}

#define NR_SHARED 0
#define NR_NUMBERED 64
#include "bug_ops.h"
