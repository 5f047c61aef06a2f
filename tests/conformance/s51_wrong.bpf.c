/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S51: what a policy with a mask for each node may not ask for. */
#include "conform.h"

const volatile u32 ask; /* @knob ask which 0 4 */

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	const struct cpumask *mask;
	s32 answer = -EBUSY;

	switch (ask) {
	case 0:
		answer = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		break;
	case 1:
		answer = scx_bpf_pick_any_cpu(p->cpus_ptr, 0);
		break;
	case 2:
		answer = scx_bpf_pick_idle_cpu_node(p->cpus_ptr, 7777, 0) == -EINVAL ? -EBUSY : 0;
		break;
	default:
		mask = ask == 3 ? scx_bpf_get_idle_cpumask() : scx_bpf_get_idle_smtmask();
		answer = bpf_cpumask_empty(mask) ? -EBUSY : 0;
		scx_bpf_put_idle_cpumask(mask);
	}
	if (answer != -EBUSY)
		bpf_printk("wrong %d", answer);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .flags = SCX_OPS_BUILTIN_IDLE_PER_NODE, .name = "t");
