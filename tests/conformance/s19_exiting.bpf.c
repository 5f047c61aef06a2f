/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S19, S20: marks task x as exiting, or as one that must not migrate. A workload
 * cannot express either, so the policy plays the kernel, in the simulator only.
 */
#include "conform.h"

const volatile u64 mark_exiting = 1;
static u64 nr_marked, nr_other;

s32 BPF_STRUCT_OPS(t_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	if (!is_named(p, 'x'))
		return 0;
	if (mark_exiting)
		p->flags |= PF_EXITING;
	else
		p->migration_disabled = 1;
	return 0;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (is_named(p, 'x'))
		nr_marked++;
	else
		nr_other++;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_marked);
	TELL(nr_other);
}

#ifndef OPS_FLAGS
#define OPS_FLAGS 0
#endif

SCX_OPS_DEFINE(t_ops, .init_task = (void *)t_init_task,
	       .enqueue = (void *)t_enqueue, .exit = (void *)t_exit,
	       .flags = OPS_FLAGS, .name = "t");
