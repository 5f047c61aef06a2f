/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pinned_in_others_queue.bpf.c - a queue for each CPU, and a task waits in that of a CPU of its mask, in turn; one that has disabled migration is not
 * taken there.
 *
 * @breaks stall
 * @shown-by pin
 */
#include "bug.h"

#define NR_NUMBERED 64

static u32 nr_queued;

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = nr_queued++ % scx_bpf_nr_cpu_ids();

	if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		cpu = scx_bpf_task_cpu(p);
	scx_bpf_dsq_insert(p, NUMBERED + (u32)cpu % NR_NUMBERED, SCX_SLICE_DFL, enq_flags);
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(NUMBERED + (u32)cpu % NR_NUMBERED, 0);
}

#define MORE_OPS .flags = SCX_OPS_ENQ_MIGRATION_DISABLED,

#include "bug_ops.h"
