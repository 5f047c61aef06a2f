/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pid_as_index.bpf.c - pids are places in an array of eight.
 *
 * @breaks error
 * @work-conserving yes  so it says
 */
#include "bug.h"

static u64 woken[8];

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	woken[p->pid]++;
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#include "bug_ops.h"
