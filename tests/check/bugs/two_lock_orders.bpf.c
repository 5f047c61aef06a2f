/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * two_lock_orders.bpf.c - two locks that enqueue takes in one order, and dispatch in the other.
 *
 * @breaks deadlock
 * @interleaved
 */
#include "bug.h"

private(A) struct bpf_res_spin_lock queued_lock;
private(B) struct bpf_res_spin_lock taken_lock;
u64 nr_queued, nr_taken;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (!bpf_res_spin_lock(&queued_lock)) {
		nr_queued++;
		if (!bpf_res_spin_lock(&taken_lock)) {
			if (nr_taken > nr_queued)
				nr_taken = nr_queued;
			bpf_res_spin_unlock(&taken_lock);
		}
		bpf_res_spin_unlock(&queued_lock);
	}
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!bpf_res_spin_lock(&taken_lock)) {
		nr_taken++;
		if (!bpf_res_spin_lock(&queued_lock)) {
			if (nr_queued < nr_taken)
				nr_queued = nr_taken;
			bpf_res_spin_unlock(&queued_lock);
		}
		bpf_res_spin_unlock(&taken_lock);
	}
	scx_bpf_dsq_move_to_local(SHARED, 0);
}

#include "bug_ops.h"
