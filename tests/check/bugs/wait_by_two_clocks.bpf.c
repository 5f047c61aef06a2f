/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * wait_by_two_clocks.bpf.c - a task that has once waited for an hour is in no hurry, and has a queue of its own. What
 * it has waited is the time on the CPU where it runs, minus that on the CPU that woke it, which may be a little ahead.
 *
 * @breaks stall
 * @shown-by skew
 */
#include "bug.h"

#define NR_SHARED 2
#define HOUR_NS 3600000000000ULL

struct bug_task {
	u64 runnable_ns;
	bool has_time;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct bug_task);
} tasks SEC(".maps");

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct bug_task *t = bpf_task_storage_get(&tasks, p, 0, 0);

	scx_bpf_dsq_insert(p, t && t->has_time ? OTHER : SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(SHARED, 0))
		scx_bpf_dsq_move_to_local(OTHER, 0);
}

void BPF_STRUCT_OPS(bug_runnable, struct task_struct *p, u64 enq_flags)
{
	struct bug_task *t = bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (t)
		t->runnable_ns = scx_bpf_now();
}

void BPF_STRUCT_OPS(bug_running, struct task_struct *p)
{
	struct bug_task *t = bpf_task_storage_get(&tasks, p, 0, 0);

	if (t && scx_bpf_now() - t->runnable_ns > HOUR_NS)
		t->has_time = true;
}

#define MORE_OPS .runnable = (void *)bug_runnable, .running = (void *)bug_running,

#include "bug_ops.h"
