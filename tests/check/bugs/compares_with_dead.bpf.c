/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * compares_with_dead.bpf.c - a task that is heavier than the one queued before it goes first; that one is kept, with
 * a reference, and may have exited meanwhile.
 *
 * @breaks exit
 * @interleaved
 */
#include "bug.h"

struct last {
	struct task_struct __kptr *task;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct last);
} lasts SEC(".maps");

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 zero = 0;
	struct last *last = bpf_map_lookup_elem(&lasts, &zero);
	struct task_struct *before;
	bool is_heavier = false;

	if (last) {
		before = bpf_kptr_xchg(&last->task, bpf_task_acquire(p));
		if (before) {
			is_heavier = p->scx.weight > before->scx.weight;
			bpf_task_release(before);
		}
	}
	scx_bpf_dsq_insert(p, is_heavier ? SHARED : OTHER, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	static u32 turn;

	turn++;
	if (!scx_bpf_dsq_move_to_local(turn % 4 ? SHARED : OTHER, 0))
		scx_bpf_dsq_move_to_local(turn % 4 ? OTHER : SHARED, 0);
}

#define NR_SHARED 2
#include "bug_ops.h"
