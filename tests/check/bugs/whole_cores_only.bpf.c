/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * whole_cores_only.bpf.c - idle CPUs are looked for among wholly idle cores alone.
 *
 * @breaks work
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	s32 cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, SCX_PICK_IDLE_CORE);

	if (cpu < 0)
		return prev_cpu;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
	return cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu;

	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, SCX_PICK_IDLE_CORE);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

#include "bug_ops.h"
