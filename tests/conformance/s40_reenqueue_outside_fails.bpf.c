/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S40: the call's first form is of ops.cpu_release() alone. */
#include "conform.h"

void BPF_STRUCT_OPS(t_tick, struct task_struct *p)
{
	scx_bpf_reenqueue_local___v1();
}

SCX_OPS_DEFINE(t_ops, .tick = (void *)t_tick, .name = "t");
