/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * counter_below_zero.bpf.c - a counter of runnable tasks goes down each time that one stops, also where it stays runnable.
 *
 * @breaks invariant
 * @invariant n_runnable >= 0
 */
#include "bug.h"

static s64 n_runnable;

void BPF_STRUCT_OPS(bug_runnable, struct task_struct *p, u64 enq_flags)
{
	__sync_fetch_and_add(&n_runnable, 1);
}

void BPF_STRUCT_OPS(bug_stopping, struct task_struct *p, bool runnable)
{
	__sync_fetch_and_add(&n_runnable, -1);
}

#define MORE_OPS .runnable = (void *)bug_runnable, .stopping = (void *)bug_stopping,

#include "bug_ops.h"
