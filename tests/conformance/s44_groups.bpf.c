/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S44: a policy is called for each group of a workload, and for each task with its group. */
#include "conform.h"

s32 BPF_STRUCT_OPS_SLEEPABLE(t_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	u64 parent = cgrp->level ? cgrp->ancestors[cgrp->level - 1]->kn->id : 0;

	if (args->bw_quota_us == ~0ULL)
		bpf_printk("group %llu of %llu weight %u quota none", cgrp->kn->id, parent,
			   args->weight);
	else
		bpf_printk("group %llu of %llu weight %u quota %llu of %llu", cgrp->kn->id, parent,
			   args->weight, args->bw_quota_us, args->bw_period_us);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	bpf_printk("%s %llu", p->comm, args->cgroup->kn->id);
	return 0;
}

SCX_OPS_DEFINE(t_ops, .cgroup_init = (void *)t_cgroup_init,
	       .init_task = (void *)t_init_task, .name = "t");
