/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S51: the default choice, and pick_idle_cpu_node, with a mask for each node; both go on in the other node. */
#include "conform.h"

const volatile u32 is_default; /* @knob is_default 0/1 0 1 */

/* Is a CPU of the node idle? Another CPU may claim it after that. */
static bool has_idle(s32 node)
{
	const struct cpumask *mask = scx_bpf_get_idle_cpumask_node(node);
	bool is_any = !bpf_cpumask_empty(mask);

	scx_bpf_put_idle_cpumask(mask);
	return is_any;
}

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	s32 node = scx_bpf_cpu_node(prev_cpu);
	bool is_near = has_idle(node), is_idle = false;
	s32 cpu;

	if (is_default)
		cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, 0, &is_idle);
	else
		cpu = scx_bpf_pick_idle_cpu_node(p->cpus_ptr, node, 0);
	if (!is_default) {
		is_idle = cpu >= 0;
		cpu = is_idle ? cpu : prev_cpu;
	}
	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
	if (p->comm[1] == 0 && is_idle)
		bpf_printk("%s %d %d", p->comm, is_near, scx_bpf_cpu_node(cpu) != node);
	return cpu;
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu,
	       .flags = SCX_OPS_BUILTIN_IDLE_PER_NODE | SCX_OPS_KEEP_BUILTIN_IDLE, .name = "t");
