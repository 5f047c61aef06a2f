/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S23: claims CPUs, by number and by choice. */
#include "conform.h"

static u64 nr_first, nr_again, nr_picked, nr_picked_again, nr_seen;

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();

	nr_seen += bpf_cpumask_test_cpu(1, idle);
	scx_bpf_put_idle_cpumask(idle);
	nr_first += scx_bpf_test_and_clear_cpu_idle(1);
	nr_again += scx_bpf_test_and_clear_cpu_idle(1);
	nr_picked += scx_bpf_pick_idle_cpu(p->cpus_ptr, 0) == 0;
	nr_picked_again += scx_bpf_pick_idle_cpu(p->cpus_ptr, 0) >= 0;
	return 1;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_seen);
	TELL(nr_first);
	TELL(nr_again);
	TELL(nr_picked);
	TELL(nr_picked_again);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu,
	       .exit = (void *)t_exit, .name = "t");
