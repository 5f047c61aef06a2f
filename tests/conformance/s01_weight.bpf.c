/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S1: queues the last one first unless each task has a weight from ops.enable() on, and none before. */
#include "conform.h"

static u64 nr_new, nr_wrong;

static bool is_own(const struct task_struct *p)
{
	return is_named(p, 'a') || is_named(p, 'b') || is_named(p, 'c');
}

s32 BPF_STRUCT_OPS(t_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	if (is_own(p)) {
		nr_new++;
		nr_wrong += p->scx.weight != 0;
	}
	return 0;
}

void BPF_STRUCT_OPS(t_enable, struct task_struct *p)
{
	nr_wrong += is_own(p) && p->scx.weight != 100;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	bool is_right = nr_new && !nr_wrong;

	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_INF,
			   is_right ? enq_flags : enq_flags | SCX_ENQ_HEAD);
}

SCX_OPS_DEFINE(t_ops, .init_task = (void *)t_init_task, .enable = (void *)t_enable,
	       .enqueue = (void *)t_enqueue, .name = "t");
