/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S17: tasks of priority 0 first. A timer gives that priority to the task named q
 * while it waits.
 */
#include "outside.h"
#include <scx/task_attr.h>

static s32 waiting_pid;

static int raise(void *map, int *key, struct timer_value *value)
{
	struct task_struct *p = bpf_task_from_pid(waiting_pid);

	if (p) {
		sl_task_set_attr((struct sl_task *)p, TASK_ATTR_PRIORITY, 0);
		bpf_task_release(p);
	}
	return 0;
}

void BPF_STRUCT_OPS(t_runnable, struct task_struct *p, u64 enq_flags)
{
	if (p->comm[0] == 'q')
		waiting_pid = p->pid;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_attr *attr = task_attr(p);

	scx_bpf_dsq_insert(p, attr && !attr->priority ? 0 : 1, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(0))
		scx_bpf_dsq_move_to_local(1);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	s32 err = scx_bpf_create_dsq(0, -1);

	if (!err)
		err = scx_bpf_create_dsq(1, -1);
	if (!err)
		LATER(raise);
	return err;
}

SCX_OPS_DEFINE(t_ops, .runnable = (void *)t_runnable,
	       .enqueue = (void *)t_enqueue, .dispatch = (void *)t_dispatch,
	       .init = (void *)t_init, .name = "t");
