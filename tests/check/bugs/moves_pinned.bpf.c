/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * moves_pinned.bpf.c - a task goes to the local queue of an idle CPU that is in its mask; one that has disabled
 * migration may not.
 *
 * @breaks error
 * @shown-by pin
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

	if (cpu < 0)
		scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	else
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | cpu, SCX_SLICE_DFL, enq_flags);
}

#define MORE_OPS .flags = SCX_OPS_ENQ_MIGRATION_DISABLED,

#include "bug_ops.h"
