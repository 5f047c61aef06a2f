/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S49, S47: tasks of a group whose CPU goes offline may run where the group above them may, and
 * come back with it. What Linux does not show is an error where it is wrong.
 */
#include "conform.h"

static u64 mask_c, mask_d; /* what they had last */

static bool t_is_online(s32 cpu)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();
	bool is_online = bpf_cpumask_test_cpu(cpu, online);

	scx_bpf_put_cpumask(online);
	return is_online;
}

void BPF_STRUCT_OPS(t_set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	u64 bits = bpf_cpumask_test_cpu(0, mask) | bpf_cpumask_test_cpu(1, mask) << 1;

	if (p->comm[1])
		return;
	bpf_printk("%s %llu", p->comm, bits);
	if (is_named(p, 'c'))
		mask_c = bits;
	if (is_named(p, 'd'))
		mask_d = bits;
}

/* w is awake long before the CPU goes, while it is gone, and long after it has come. */
void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	u64 expected = t_is_online(1) ? 2 : 1;

	if (!is_named(p, 'w') || !mask_c)
		return;
	if (mask_c != expected || mask_d != expected)
		scx_bpf_error("masks 0x%llx and 0x%llx, not 0x%llx", mask_c, mask_d, expected);
}

void BPF_STRUCT_OPS(t_cpu_offline, s32 cpu) { }

void BPF_STRUCT_OPS(t_cpu_online, s32 cpu) { }

SCX_OPS_DEFINE(t_ops, .running = (void *)t_running,
	       .set_cpumask = (void *)t_set_cpumask,
	       .cpu_online = (void *)t_cpu_online,
	       .cpu_offline = (void *)t_cpu_offline, .name = "t");
