/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * slice_in_code.bpf.c - the knob says how long a slice is, and a number in the code how short it may become.
 *
 * @breaks scaled
 * @knob slice_ns ns 1000000 1000000000  slice of all tasks together
 */
#include "bug.h"

const volatile u64 slice_ns = 12000000;

static u64 slice(void)
{
	u64 nr = scx_bpf_dsq_nr_queued(SHARED) + 1;

	return slice_ns / nr > 5000000 ? slice_ns / nr : 5000000;
}

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SHARED, slice(), enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(SHARED, 0) && prev)
		scx_bpf_task_set_slice(prev, slice());
}

#include "bug_ops.h"
