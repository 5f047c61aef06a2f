/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * cpus_by_power_of_two.bpf.c - CPUs are in teams of equal size, a power of two, and the CPUs of one team take
 * all tasks. On an odd number of CPUs that is one CPU.
 *
 * @breaks more-cpus
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
	s32 cpu;

	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	bpf_for(cpu, 0, scx_bpf_nr_cpu_ids())
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 nr = scx_bpf_nr_cpu_ids();

	if ((u32)cpu < (nr & -nr))
		scx_bpf_dsq_move_to_local(SHARED, 0);
}

#include "bug_ops.h"
