/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S36: prints what it is told about a task, at init_task and whenever it runs. */
#include "conform.h"
#include <scx/task_attr.h>

static void show(const char *when, struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);

	if (!attr) {
		bpf_printk("%s %s nothing, weight %u", when, p->comm, p->scx.weight);
		return;
	}
	bpf_printk("%s %s tickets %u, priority %d, %s credits, weight %u", when, p->comm,
		   attr->tickets, attr->priority,
		   task_attr_given(attr, TASK_ATTR_CREDITS) ? "with" : "no", p->scx.weight);
}

s32 BPF_STRUCT_OPS(t_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	show(args->fork ? "new" : "old", p);
	return 0;
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	show("run", p);
}

SCX_OPS_DEFINE(t_ops, .init_task = (void *)t_init_task,
	       .running = (void *)t_running, .name = "t");
