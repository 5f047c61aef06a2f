/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * stale_mask.bpf.c - a mask for scratch is joined with each task's own, and keeps that of the task before.
 *
 * @breaks error
 * @work-conserving yes  so it says
 */
#include "bug.h"

static struct cpumask allowed;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu;

	allowed.bits[0] |= p->cpus_ptr->bits[0];
	cpu = scx_bpf_pick_idle_cpu(&allowed, 0);
	if (cpu < 0)
		scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	else
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | cpu, SCX_SLICE_DFL, enq_flags);
}

#include "bug_ops.h"
