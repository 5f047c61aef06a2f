/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S1: of tasks that it finds a policy hears the CPUs, too, after their weight. */
#include "conform.h"

static u64 nr_masks, nr_right, nr_late;
static bool has_weight[2];

static bool is_old(const struct task_struct *p)
{
	return is_named(p, 'a') || is_named(p, 'b');
}

void BPF_STRUCT_OPS(t_set_weight, struct task_struct *p, u32 weight)
{
	if (is_old(p))
		has_weight[p->comm[0] == 'b'] = true;
}

void BPF_STRUCT_OPS(t_set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	if (!is_old(p))
		return;
	nr_masks++;
	nr_right += bpf_cpumask_weight(mask) == (u32)p->nr_cpus_allowed &&
		    has_weight[p->comm[0] == 'b'];
}

void BPF_STRUCT_OPS(t_runnable, struct task_struct *p, u64 enq_flags)
{
	if (is_old(p))
		nr_late += nr_masks < 2;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_masks);
	TELL(nr_right);
	TELL(nr_late);
}

SCX_OPS_DEFINE(t_ops, .set_weight = (void *)t_set_weight, .set_cpumask = (void *)t_set_cpumask,
	       .runnable = (void *)t_runnable, .exit = (void *)t_exit, .name = "t");
