/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S41: gives up when a third task arrives, and writes down what it knows. */
#include "conform.h"

#define QUEUE 7

/* 0: in ops.dump() and its like; 1: elsewhere, which is an error. */
const volatile u64 elsewhere = 0;
static u64 nr_enqueue;

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return 0;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (elsewhere)
		scx_bpf_dump("a line from elsewhere\n");
	else if (++nr_enqueue == 3)
		scx_bpf_error("three are too many");
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	/* The other CPU stays idle, however late it begins. */
	if (cpu == 0)
		scx_bpf_dsq_move_to_local(QUEUE);
}

void BPF_STRUCT_OPS(t_dump, struct scx_dump_ctx *ctx)
{
	/* Pieces of one line, and two lines in one piece. */
	scx_bpf_dump("kind %d, ", ctx->kind);
	scx_bpf_dump("queued %d\nsecond", scx_bpf_dsq_nr_queued(QUEUE));
	scx_bpf_dump(" line\n");
}

void BPF_STRUCT_OPS(t_dump_cpu, struct scx_dump_ctx *ctx, s32 cpu, bool idle)
{
	/* A line without an end ends here. */
	scx_bpf_dump("cpu %d %s", cpu, idle ? "idle" : "busy");
}

void BPF_STRUCT_OPS(t_dump_task, struct scx_dump_ctx *ctx, struct task_struct *p)
{
	scx_bpf_dump("task %s\n", p->comm);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	bpf_printk("exit");
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu,
	       .enqueue = (void *)t_enqueue, .dispatch = (void *)t_dispatch, .dump = (void *)t_dump,
	       .dump_cpu = (void *)t_dump_cpu, .dump_task = (void *)t_dump_task,
	       .init = (void *)t_init, .exit = (void *)t_exit, .name = "t");
