/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S3: a policy that decides nothing. */
#include "conform.h"

static u64 nr_running;

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	nr_running++;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_running);
}

SCX_OPS_DEFINE(t_ops, .running = (void *)t_running, .exit = (void *)t_exit,
	       .name = "t");
