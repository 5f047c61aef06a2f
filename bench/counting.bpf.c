/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * counting.bpf.c - first in, first out, with every callback there is, counted.
 *
 * What `schedlab selfbench uthreads` counts is what a policy that asks for
 * everything would be told: docs/semantics.md says how often that is, and
 * tests/uthreads/test_callbacks.py holds the counts against it.
 *
 * @work-conserving yes  one queue, which every CPU takes from
 *
 * Read next: uthreads_bench.py.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

/* Of its own: nobody asks a policy whose tasks are all in the global queue. */
#define COUNTING_DSQ 0

static u64 nr_select_cpu, nr_enqueue, nr_dequeue, nr_dispatch, nr_runnable, nr_running, nr_stopping,
	nr_quiescent, nr_yield, nr_init_task, nr_enable, nr_disable, nr_exit_task;

#define COUNT(name) __sync_fetch_and_add(&nr_##name, 1)
#define TELL(name) bpf_printk("count %s %lld", #name, (long long)nr_##name)

s32 BPF_STRUCT_OPS(counting_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;

	COUNT(select_cpu);
	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
}

void BPF_STRUCT_OPS(counting_enqueue, struct task_struct *p, u64 enq_flags)
{
	COUNT(enqueue);
	scx_bpf_dsq_insert(p, COUNTING_DSQ, SCX_SLICE_DFL, enq_flags);
}

void BPF_STRUCT_OPS(counting_dequeue, struct task_struct *p, u64 deq_flags)
{
	COUNT(dequeue);
}

void BPF_STRUCT_OPS(counting_dispatch, s32 cpu, struct task_struct *prev)
{
	COUNT(dispatch);
	scx_bpf_dsq_move_to_local(COUNTING_DSQ);
}

void BPF_STRUCT_OPS(counting_runnable, struct task_struct *p, u64 enq_flags)
{
	COUNT(runnable);
}

void BPF_STRUCT_OPS(counting_running, struct task_struct *p)
{
	COUNT(running);
}

void BPF_STRUCT_OPS(counting_stopping, struct task_struct *p, bool runnable)
{
	COUNT(stopping);
}

void BPF_STRUCT_OPS(counting_quiescent, struct task_struct *p, u64 deq_flags)
{
	COUNT(quiescent);
}

bool BPF_STRUCT_OPS(counting_yield, struct task_struct *from, struct task_struct *to)
{
	COUNT(yield);
	/* As without this callback: the slice is given up. */
	scx_bpf_task_set_slice(from, 0);
	return false;
}

s32 BPF_STRUCT_OPS(counting_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	COUNT(init_task);
	return 0;
}

void BPF_STRUCT_OPS(counting_enable, struct task_struct *p)
{
	COUNT(enable);
}

void BPF_STRUCT_OPS(counting_disable, struct task_struct *p)
{
	COUNT(disable);
}

void BPF_STRUCT_OPS(counting_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	COUNT(exit_task);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(counting_init)
{
	return scx_bpf_create_dsq(COUNTING_DSQ, -1);
}

void BPF_STRUCT_OPS(counting_exit, struct scx_exit_info *ei)
{
	TELL(select_cpu);
	TELL(enqueue);
	TELL(dequeue);
	TELL(dispatch);
	TELL(runnable);
	TELL(running);
	TELL(stopping);
	TELL(quiescent);
	TELL(yield);
	TELL(init_task);
	TELL(enable);
	TELL(disable);
	TELL(exit_task);
}

SCX_OPS_DEFINE(counting_ops,
	       .select_cpu = (void *)counting_select_cpu,
	       .enqueue = (void *)counting_enqueue,
	       .dequeue = (void *)counting_dequeue,
	       .dispatch = (void *)counting_dispatch,
	       .runnable = (void *)counting_runnable,
	       .running = (void *)counting_running,
	       .stopping = (void *)counting_stopping,
	       .quiescent = (void *)counting_quiescent,
	       .yield = (void *)counting_yield,
	       .init_task = (void *)counting_init_task,
	       .enable = (void *)counting_enable,
	       .disable = (void *)counting_disable,
	       .exit_task = (void *)counting_exit_task,
	       .init = (void *)counting_init,
	       .exit = (void *)counting_exit,
	       .name = "counting");
