/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S23: ops.update_idle beside the built-in masks. */
#include "conform.h"

static u64 nr_idle, nr_busy, nr_wrong;
static u64 is_idle[2];
static u64 is_known[2];

void BPF_STRUCT_OPS(t_update_idle, s32 cpu, bool idle)
{
	const struct cpumask *mask;

	if (cpu < 0 || cpu > 1)
		return;
	/* Transitions alternate, and the mask is up to date by then. */
	mask = scx_bpf_get_idle_cpumask();
	if ((is_known[cpu] && is_idle[cpu] == idle) || bpf_cpumask_test_cpu(cpu, mask) != idle)
		nr_wrong++;
	scx_bpf_put_idle_cpumask(mask);
	is_known[cpu] = 1;
	is_idle[cpu] = idle;
	if (idle)
		nr_idle++;
	else
		nr_busy++;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_idle);
	TELL(nr_busy);
	TELL(nr_wrong);
}

SCX_OPS_DEFINE(t_ops, .update_idle = (void *)t_update_idle,
	       .exit = (void *)t_exit, .flags = SCX_OPS_KEEP_BUILTIN_IDLE,
	       .name = "t");
