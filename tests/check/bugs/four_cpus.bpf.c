/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * four_cpus.bpf.c - queues for four CPUs, whatever the machine has.
 *
 * @breaks error
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, 100 + scx_bpf_task_cpu(p), SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 i;

	if (cpu < 4 && scx_bpf_dsq_move_to_local(100 + cpu, 0))
		return;
	bpf_for(i, 0, 4)
		if (scx_bpf_dsq_move_to_local(100 + i, 0))
			return;
}

#define OWN_INIT
s32 BPF_STRUCT_OPS_SLEEPABLE(bug_init)
{
	s32 err = 0, cpu;

	bpf_for(cpu, 0, 4)
		if (!err)
			err = scx_bpf_create_dsq(100 + cpu, -1);
	return err;
}

#include "bug_ops.h"
