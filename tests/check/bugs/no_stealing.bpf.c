/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * no_stealing.bpf.c - a queue for each CPU, and none takes from another one.
 *
 * @breaks work
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, NUMBERED + scx_bpf_task_cpu(p), SCX_SLICE_DFL, enq_flags);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(NUMBERED + cpu, 0);
}

#define NR_SHARED 0
#define NR_NUMBERED 64
#include "bug_ops.h"
