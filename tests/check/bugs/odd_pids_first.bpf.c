/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * odd_pids_first.bpf.c - a hash of pids spreads tasks over two queues, and one of these is looked at first.
 *
 * @breaks renamed
 * @starvation-free no  beside tasks of the first queue those of the second wait
 */
#include "bug.h"

#define NR_SHARED 2

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, p->pid & 1 ? SHARED : OTHER, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(SHARED, 0))
		scx_bpf_dsq_move_to_local(OTHER, 0);
}

#include "bug_ops.h"
