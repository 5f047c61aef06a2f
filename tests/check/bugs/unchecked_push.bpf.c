/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * unchecked_push.bpf.c - a queue of pids that is large enough; that a push may fail all the same is not thought of.
 *
 * @breaks ignored-error
 * @shown-by fail
 */
#include "bug.h"

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 8192);
	__type(value, s32);
} pids SEC(".maps");

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 pid = p->pid;

	bpf_map_push_elem(&pids, &pid, 0);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;
	s32 pid;

	if (bpf_map_pop_elem(&pids, &pid))
		return;
	p = bpf_task_from_pid(pid);
	if (!p)
		return;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, 0);
	bpf_task_release(p);
}

#include "bug_ops.h"
