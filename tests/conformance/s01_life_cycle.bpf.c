/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S1: prints every callback in the order of the calls. */
#include "conform.h"

s32 BPF_STRUCT_OPS(t_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	CALLED("init_task", p);
	return 0;
}

void BPF_STRUCT_OPS(t_enable, struct task_struct *p)
{
	CALLED("enable", p);
}

void BPF_STRUCT_OPS(t_set_weight, struct task_struct *p, u32 weight)
{
	CALLED("set_weight", p);
}

void BPF_STRUCT_OPS(t_runnable, struct task_struct *p, u64 enq_flags)
{
	CALLED("runnable", p);
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	CALLED("enqueue", p);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_INF, enq_flags);
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

void BPF_STRUCT_OPS(t_disable, struct task_struct *p)
{
	CALLED("disable", p);
}

void BPF_STRUCT_OPS(t_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	CALLED("exit_task", p);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	bpf_printk("init");
	return 0;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	bpf_printk("exit");
}

SCX_OPS_DEFINE(t_ops,
	       .init_task = (void *)t_init_task, .enable = (void *)t_enable,
	       .set_weight = (void *)t_set_weight,
	       .runnable = (void *)t_runnable, .enqueue = (void *)t_enqueue,
	       .running = (void *)t_running, .stopping = (void *)t_stopping,
	       .quiescent = (void *)t_quiescent, .disable = (void *)t_disable,
	       .exit_task = (void *)t_exit_task,
	       .init = (void *)t_init, .exit = (void *)t_exit, .name = "t");
