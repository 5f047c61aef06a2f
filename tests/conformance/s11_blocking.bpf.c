/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S11: counts how tasks leave the CPU. */
#include "conform.h"

static u64 nr_stopping, nr_stopping_runnable, nr_quiescent, nr_not_sleeping;

void BPF_STRUCT_OPS(t_stopping, struct task_struct *p, bool runnable)
{
	if (runnable)
		nr_stopping_runnable++;
	else
		nr_stopping++;
}

void BPF_STRUCT_OPS(t_quiescent, struct task_struct *p, u64 deq_flags)
{
	nr_quiescent++;
	if (!(deq_flags & SCX_DEQ_SLEEP))
		nr_not_sleeping++;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 2000000, enq_flags);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_stopping);
	TELL(nr_stopping_runnable);
	TELL(nr_quiescent);
	TELL(nr_not_sleeping);
}

SCX_OPS_DEFINE(t_ops, .stopping = (void *)t_stopping,
	       .quiescent = (void *)t_quiescent, .enqueue = (void *)t_enqueue,
	       .exit = (void *)t_exit, .name = "t");
