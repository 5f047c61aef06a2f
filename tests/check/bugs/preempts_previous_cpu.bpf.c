/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * preempts_previous_cpu.bpf.c - an urgent task preempts what runs on the CPU that was chosen for it, and looks at
 * no other.
 *
 * @breaks priority
 * @priority priority at once
 * @starvation-free no  a task that never blocks keeps those below it waiting
 */
#include "bug.h"
#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/running.h>
#include <scx/task_attr.h>
#include <scx/task_ctx.h>

static u64 urgency(struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);

	return task_attr_given(attr, TASK_ATTR_PRIORITY) ? (u64)attr->priority : 50;
}

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_only(p, prev_cpu, wake_flags);
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p);

	scx_bpf_dsq_insert_vtime(p, SHARED, SCX_SLICE_DFL, urgency(p), enq_flags);
#ifdef LOOKS_AT_ALL_CPUS
	preempt_last(p, urgency(p), 0);
#else
	if (running_key(cpu, 0) > urgency(p)) {
		note_running(cpu, urgency(p), 0);
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	} else {
		kick_idle_for(p);
	}
#endif
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	if (may_continue(prev, cpu) &&
	    !is_queued_before(SHARED, cpu, urgency(prev) + !prev->scx.slice)) {
		scx_bpf_task_set_slice(prev, SCX_SLICE_DFL);
		note_running(cpu, urgency(prev), 0);
	} else if (!take_and_pass_on(SHARED, cpu)) {
		note_idle(cpu);
	}
}

void BPF_STRUCT_OPS(bug_running, struct task_struct *p)
{
	note_running(scx_bpf_task_cpu(p), urgency(p), 0);
}

#define MORE_OPS .running = (void *)bug_running,

#include "bug_ops.h"
