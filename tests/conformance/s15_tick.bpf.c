/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S15: counts ops.tick; the slice is a knob. */
#include "conform.h"

const volatile u64 slice_ns = 2500000;
static u64 nr_tick;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, slice_ns, enq_flags);
}

void BPF_STRUCT_OPS(t_tick, struct task_struct *p)
{
	nr_tick++;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_tick);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .tick = (void *)t_tick,
	       .exit = (void *)t_exit, .name = "t");
