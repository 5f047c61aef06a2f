/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S44: cgroups that come, change and go, and a task that is moved, under a policy. */
#include "outside.h"

static struct cgroup *outer, *inner;
static u64 nr_busy, nr_gone;

static int change(void *map, int *key, struct timer_value *value)
{
	struct task_struct *p = bpf_task_from_pid(1);

	if (sl_cgroup_create(NULL, "outer", 200, &outer) ||
	    sl_cgroup_create(outer, "inner", 300, &inner) || !p)
		return 0;
	sl_task_set_cgroup((struct sl_task *)p, inner);
	sl_cgroup_set_weight(inner, 400);
	nr_busy += sl_cgroup_remove(inner) == -EBUSY;
	sl_task_set_cgroup((struct sl_task *)p, outer);
	nr_gone += sl_cgroup_remove(inner) == 0;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	bpf_printk("cgroup_init %d %u", cgrp->level, args->weight);
	return 0;
}

void BPF_STRUCT_OPS(t_cgroup_exit, struct cgroup *cgrp)
{
	bpf_printk("cgroup_exit %d", cgrp->level);
}

void BPF_STRUCT_OPS(t_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	bpf_printk("cgroup_set_weight %d %u", cgrp->level, weight);
}

s32 BPF_STRUCT_OPS(t_cgroup_prep_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	bpf_printk("prep_move %d %d", from->level, to->level);
	return 0;
}

void BPF_STRUCT_OPS(t_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	bpf_printk("move %d %d", from->level, to->level);
	CALLED("move", p);
}

void BPF_STRUCT_OPS(t_runnable, struct task_struct *p, u64 enq_flags)
{
	CALLED("runnable", p);
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	CALLED("running", p);
}

void BPF_STRUCT_OPS(t_stopping, struct task_struct *p, bool runnable)
{
	CALLED(runnable ? "stopping_runnable" : "stopping", p);
}

void BPF_STRUCT_OPS(t_quiescent, struct task_struct *p, u64 deq_flags)
{
	CALLED("quiescent", p);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	LATER(change);
	return 0;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_busy);
	TELL(nr_gone);
}

SCX_OPS_DEFINE(t_ops, .cgroup_init = (void *)t_cgroup_init,
	       .cgroup_exit = (void *)t_cgroup_exit,
	       .cgroup_set_weight = (void *)t_cgroup_set_weight,
	       .cgroup_prep_move = (void *)t_cgroup_prep_move,
	       .cgroup_move = (void *)t_cgroup_move,
	       .runnable = (void *)t_runnable, .running = (void *)t_running,
	       .stopping = (void *)t_stopping, .quiescent = (void *)t_quiescent,
	       .init = (void *)t_init, .exit = (void *)t_exit, .name = "t");
