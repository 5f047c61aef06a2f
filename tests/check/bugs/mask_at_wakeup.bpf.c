/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * mask_at_wakeup.bpf.c - two teams of CPUs, even and odd, each with a queue; where a task may run decides between them as it
 * wakes up, and not where its slice has ended.
 *
 * @breaks stall
 */
#include "bug.h"

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 nr_teams = scx_bpf_nr_cpu_ids() < 2 ? 1 : 2, team = (u32)p->pid;
	s32 cpu;

	if (enq_flags & SCX_ENQ_WAKEUP)
		team = bpf_cpumask_first(p->cpus_ptr);
	scx_bpf_dsq_insert(p, SHARED + team % nr_teams, SCX_SLICE_DFL, enq_flags);
	bpf_for(cpu, 0, scx_bpf_nr_cpu_ids())
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(SHARED + (u32)cpu % 2, 0);
}

#define NR_SHARED 2
#include "bug_ops.h"
