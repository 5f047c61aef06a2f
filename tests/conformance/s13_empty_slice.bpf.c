/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S13: takes the slice away again before the task runs. */
#include "conform.h"

static u64 slice_at_run_ns;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 1000000, enq_flags);
	scx_bpf_task_set_slice(p, 0);
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	slice_at_run_ns = p->scx.slice;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(slice_at_run_ns);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .running = (void *)t_running, .exit = (void *)t_exit,
	       .name = "t");
