/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S17, S18: a task changes the CPUs and weights of others, one that runs and one that
 * waits. Linux cannot show what is counted here, so a wrong number is also an error.
 */
#include "conform.h"

static u64 nr_masks, nr_weights, nr_runnable, nr_quiescent;

static bool is_changed(struct task_struct *p)
{
	return is_named(p, 'h') || is_named(p, 'q');
}

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return is_changed(p) ? 0 : 1;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_runnable, struct task_struct *p, u64 enq_flags)
{
	nr_runnable += is_changed(p);
}

void BPF_STRUCT_OPS(t_quiescent, struct task_struct *p, u64 deq_flags)
{
	nr_quiescent += is_changed(p);
}

void BPF_STRUCT_OPS(t_set_cpumask, struct task_struct *p, const struct cpumask *cpumask)
{
	nr_masks += is_changed(p) && bpf_cpumask_test_cpu(1, cpumask) &&
		    !bpf_cpumask_test_cpu(0, cpumask);
}

void BPF_STRUCT_OPS(t_set_weight, struct task_struct *p, u32 weight)
{
	nr_weights += is_changed(p) && weight > 100;
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	/* The last task begins when the others have ended. */
	if (is_named(p, 'z') &&
	    (nr_masks != 2 || nr_weights != 2 || nr_runnable != 8 || nr_quiescent != 8))
		scx_bpf_error("%llu masks, %llu weights, %llu runnable, %llu quiescent", nr_masks,
			      nr_weights, nr_runnable, nr_quiescent);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_masks);
	TELL(nr_weights);
	TELL(nr_runnable);
	TELL(nr_quiescent);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu,
	       .enqueue = (void *)t_enqueue, .runnable = (void *)t_runnable,
	       .quiescent = (void *)t_quiescent, .set_cpumask = (void *)t_set_cpumask,
	       .set_weight = (void *)t_set_weight, .running = (void *)t_running,
	       .exit = (void *)t_exit, .name = "t");
