/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * released_for_good.bpf.c - a queue for each CPU, from which a CPU takes that no higher scheduling class has; it is
 * not noted when that class gives it back.
 *
 * @breaks stall
 * @shown-by take
 */
#include "bug.h"

#define NR_NUMBERED 64

static bool is_released[NR_NUMBERED];

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, NUMBERED + scx_bpf_task_cpu(p) % NR_NUMBERED, SCX_SLICE_DFL,
			   enq_flags);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!is_released[cpu % NR_NUMBERED])
		scx_bpf_dsq_move_to_local(NUMBERED + cpu % NR_NUMBERED, 0);
}

void BPF_STRUCT_OPS(bug_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	is_released[cpu % NR_NUMBERED] = true;
}

#define MORE_OPS .cpu_release = (void *)bug_cpu_release,

#include "bug_ops.h"
