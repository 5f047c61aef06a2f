/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * idle_not_claimed.bpf.c - the mask of idle CPUs is read, and the CPU in it is not claimed: two wakers take one CPU.
 *
 * @breaks work
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	s32 cpu;

	bpf_for(cpu, 0, scx_bpf_nr_cpu_ids())
		if (bpf_cpumask_test_cpu(cpu, idle) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			prev_cpu = cpu;
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
			break;
		}
	scx_bpf_put_idle_cpumask(idle);
	return prev_cpu;
}

#include "bug_ops.h"
