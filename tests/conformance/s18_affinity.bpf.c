/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S18: after 2 ms, both tasks may run on CPU 1 only. */
#include "outside.h"

static struct cpumask only_1 = { .bits = { 2 } };
static u64 nr_set_cpumask, nr_runnable, nr_quiescent;

static int change(void *map, int *key, struct timer_value *value)
{
	for (s32 pid = 1; pid <= 2; pid++) {
		struct task_struct *p = bpf_task_from_pid(pid);

		if (p)
			sl_task_set_affinity((struct sl_task *)p, &only_1);
	}
	return 0;
}

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return 0;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	if (bpf_cpumask_test_cpu(1, mask) && !bpf_cpumask_test_cpu(0, mask))
		nr_set_cpumask++;
}

void BPF_STRUCT_OPS(t_runnable, struct task_struct *p, u64 enq_flags)
{
	nr_runnable++;
}

void BPF_STRUCT_OPS(t_quiescent, struct task_struct *p, u64 deq_flags)
{
	nr_quiescent++;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	LATER(change);
	return 0;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_set_cpumask);
	TELL(nr_runnable);
	TELL(nr_quiescent);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu,
	       .enqueue = (void *)t_enqueue,
	       .set_cpumask = (void *)t_set_cpumask,
	       .runnable = (void *)t_runnable,
	       .quiescent = (void *)t_quiescent, .init = (void *)t_init,
	       .exit = (void *)t_exit, .name = "t");
