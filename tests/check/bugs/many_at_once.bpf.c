/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * many_at_once.bpf.c - all that wait are dispatched at once, more than there are slots.
 *
 * @breaks error
 * @work-conserving yes  so it says
 */
#include "bug.h"

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 4096);
	__type(value, s32);
} waiting SEC(".maps");

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 pid = p->pid;

	bpf_map_push_elem(&waiting, &pid, 0);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;
	s32 pid, i;

	bpf_for(i, 0, 64) {
		if (bpf_map_pop_elem(&waiting, &pid))
			return;
		p = bpf_task_from_pid(pid);
		if (!p)
			continue;
		scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, 0);
		bpf_task_release(p);
	}
	scx_bpf_dsq_move_to_local(SHARED, 0);
}

#define MORE_OPS .dispatch_max_batch = 4,

#include "bug_ops.h"
