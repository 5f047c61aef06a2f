/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S16: what select_cpu is asked, and what becomes of its answer. */
#include "conform.h"

const volatile s32 answer = 0;
static u64 nr_pinned, nr_free, nr_selected_flag, nr_fork;

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	if (p->nr_cpus_allowed == 1)
		nr_pinned++;
	else
		nr_free++;
	if (wake_flags & SCX_WAKE_FORK)
		nr_fork++;
	return answer;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_CPU_SELECTED)
		nr_selected_flag++;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_pinned);
	TELL(nr_free);
	TELL(nr_selected_flag);
	TELL(nr_fork);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu,
	       .enqueue = (void *)t_enqueue, .exit = (void *)t_exit,
	       .name = "t");
