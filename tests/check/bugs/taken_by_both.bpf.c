/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * taken_by_both.bpf.c - pids wait in a ring; a CPU looks at the first, and says in another step that it is taken: two CPUs
 * take one task, and the next is passed over.
 *
 * @breaks stall
 * @interleaved
 */
#include "bug.h"

#define NR_PLACES 1024

static s32 ring[NR_PLACES];
static u32 first, last;

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	WRITE_ONCE(ring[__sync_fetch_and_add(&last, 1) % NR_PLACES], p->pid);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 at = READ_ONCE(first);
	struct task_struct *p = NULL;

	if (at != READ_ONCE(last)) {
		p = bpf_task_from_pid(READ_ONCE(ring[at % NR_PLACES]));
		__sync_fetch_and_add(&first, 1);
	}
	if (p)
		scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, 0);
	scx_bpf_dsq_move_to_local(SHARED, 0);
	if (p) {
		kick_idle_for(p);
		bpf_task_release(p);
	}
}

#include "bug_ops.h"
