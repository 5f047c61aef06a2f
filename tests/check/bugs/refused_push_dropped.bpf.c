/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * refused_push_dropped.bpf.c - a queue of pids that is large enough; a task whose push fails all the same is dropped.
 *
 * @breaks stall
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

	if (bpf_map_push_elem(&pids, &pid, 0))
		return;
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
