/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * torn_counter.bpf.c - a counter of queued tasks that two CPUs change without an atomic operation.
 *
 * @breaks race
 * @interleaved
 */
#include "bug.h"

u64 nr_enqueued;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	nr_enqueued++;
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#include "bug_ops.h"
