/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * next_overwritten.bpf.c - one task waits beside the queue, as the next; that none does yet is looked at in one step, and
 * its pid written in another: two CPUs write theirs, and one of the two tasks is lost.
 *
 * It breaks only where CPUs interleave: see test_guest_check.py.
 * @breaks stall
 * @interleaved
 */
#include "bugs/bug.h"

static s32 next;

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;

	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (!READ_ONCE(next))
		__sync_lock_test_and_set(&next, p->pid);
	else
		scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 pid = __sync_lock_test_and_set(&next, 0);
	struct task_struct *p = pid ? bpf_task_from_pid(pid) : NULL;

	if (p)
		scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, 0);
	scx_bpf_dsq_move_to_local(SHARED, 0);
	if (p) {
		kick_idle_for(p);
		bpf_task_release(p);
	}
}

#include "bugs/bug_ops.h"
