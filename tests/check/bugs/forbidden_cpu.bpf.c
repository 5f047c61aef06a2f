/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * forbidden_cpu.bpf.c - a task is sent to an idle CPU that it may not run on.
 *
 * @breaks error
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();
	s32 cpu = scx_bpf_pick_idle_cpu(online, 0);

	scx_bpf_put_cpumask(online);
	if (cpu < 0)
		scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	else
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | cpu, SCX_SLICE_DFL, enq_flags);
}

#include "bug_ops.h"
