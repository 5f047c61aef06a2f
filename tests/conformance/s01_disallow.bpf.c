/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S1: wants no task. */
#include "conform.h"

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	p->scx.disallow = true;
	return 0;
}

SCX_OPS_DEFINE(t_ops, .init_task = (void *)t_init_task, .name = "t");
