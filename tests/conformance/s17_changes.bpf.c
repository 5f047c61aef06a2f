/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S17: prints what a change of the weight makes the core call. */
#include "outside.h"

static struct held held;
static u64 nr_sched_change, nr_weight;
const volatile u64 from_outside = 0;

static int change(void *map, int *key, struct timer_value *value)
{
	for (s32 pid = 1; pid <= 2; pid++) {
		struct task_struct *p = bpf_task_from_pid(pid);

		if (p)
			sl_task_set_weight((struct sl_task *)p, 300);
	}
	return 0;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	CALLED("enqueue", p);
	hold(&held, p);
}

/* A task that was taken back is named twice; the first is stale (S21). */
void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p = bpf_task_from_pid(let_go(&held));

	if (!p)
		return;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
	bpf_task_release(p);
}

void BPF_STRUCT_OPS(t_dequeue, struct task_struct *p, u64 deq_flags)
{
	if (!(deq_flags & SCX_DEQ_SCHED_CHANGE))
		return;
	nr_sched_change++;
	CALLED("dequeue", p);
}

void BPF_STRUCT_OPS(t_runnable, struct task_struct *p, u64 enq_flags)
{
	CALLED("runnable", p);
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

void BPF_STRUCT_OPS(t_set_weight, struct task_struct *p, u32 weight)
{
	CALLED("set_weight", p);
	nr_weight += weight;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	if (from_outside)
		LATER(change);
	return 0;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_sched_change);
	TELL(nr_weight);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .dequeue = (void *)t_dequeue,
	       .runnable = (void *)t_runnable, .running = (void *)t_running,
	       .stopping = (void *)t_stopping,
	       .quiescent = (void *)t_quiescent,
	       .set_weight = (void *)t_set_weight, .init = (void *)t_init,
	       .exit = (void *)t_exit, .name = "t");
