/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S44: a policy goes over the tree of cgroups, and sees from a task which one it is in. */
#include "outside.h"

static struct cgroup *a, *b, *below_a, *made;

static void tell_tree(struct cgroup *from, u32 order)
{
	struct cgroup_subsys_state *pos;

	bpf_rcu_read_lock();
	bpf_for_each(css, pos, &from->self, order)
		bpf_printk("%s %llu", order == BPF_CGROUP_ITER_DESCENDANTS_PRE ? "pre" : "post",
			   pos->cgroup->kn->id);
	bpf_rcu_read_unlock();
}

static int change(void *map, int *key, struct timer_value *value)
{
	struct task_struct *p = bpf_task_from_pid(1);
	struct cgroup *root = bpf_cgroup_from_id(1);

	if (!root || sl_cgroup_create(NULL, "a", 100, &a) || sl_cgroup_create(NULL, "b", 100, &b) ||
	    sl_cgroup_create(a, "below_a", 100, &below_a) || !p)
		return 0;
	tell_tree(root, BPF_CGROUP_ITER_DESCENDANTS_PRE);
	tell_tree(root, BPF_CGROUP_ITER_DESCENDANTS_POST);
	tell_tree(a, BPF_CGROUP_ITER_DESCENDANTS_PRE);
	tell_tree(a, BPF_CGROUP_ITER_DESCENDANTS_POST);
	tell_tree(b, 0);
	sl_cgroup_remove(b);
	tell_tree(root, BPF_CGROUP_ITER_DESCENDANTS_PRE);
	sl_task_set_cgroup((struct sl_task *)p, below_a);
	bpf_printk("task %llu ancestor %llu", p->cgroups->dfl_cgrp->kn->id,
		   p->cgroups->dfl_cgrp->ancestors[1]->kn->id);
	made = below_a;
	for (int i = 0; i < 100 && !sl_cgroup_create(made, "deeper", 100, &made); i++)
		;
	bpf_printk("deepest %d", made->level);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	LATER(change);
	return 0;
}

SCX_OPS_DEFINE(t_ops, .init = (void *)t_init, .name = "t");
