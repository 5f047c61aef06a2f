/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * late_kick_ignored.bpf.c - a task is handed to an idle CPU, which is kicked for it; a CPU that looks more than a
 * millisecond later believes that another one has the task by then.
 *
 * @breaks stall
 * @shown-by kick
 */
#include "bug.h"

#define NR_CPUS 64

static s32 handed_pid[NR_CPUS];
static u64 handed_ns[NR_CPUS];

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

	if (cpu < 0) {
		scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
		return;
	}
	handed_pid[cpu % NR_CPUS] = p->pid;
	handed_ns[cpu % NR_CPUS] = scx_bpf_now();
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p = bpf_task_from_pid(handed_pid[cpu % NR_CPUS]);

	handed_pid[cpu % NR_CPUS] = 0;
	if (p) {
		if (!time_after(scx_bpf_now(), handed_ns[cpu % NR_CPUS] + 1000000) &&
		    bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
		bpf_task_release(p);
	}
	scx_bpf_dsq_move_to_local(SHARED, 0);
}

#include "bug_ops.h"
