/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * forgotten_kick.bpf.c - a task is queued, and no idle CPU hears of it.
 *
 * @breaks work
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
}

#include "bug_ops.h"
