/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * sjf.bpf.c - shortest job first: when a CPU is free, the shortest burst begins.
 *
 * Each time a task becomes runnable it begins a burst, which ends when it blocks.
 * One queue for all CPUs, in the order of the lengths of bursts; a free CPU takes
 * the first task that may run there. No task is ever preempted.
 *
 * The length of a burst is the task's attribute `burst` or, where none was declared,
 * a prediction from its past bursts (scx/policy/burst.h). A task that yields goes
 * behind the first of the queue, for what its burst has left or, where it has
 * outlived its length, for as long again as it has.
 *
 * Good at: mean turnaround of jobs that are there at the same time. No order of
 * them has a lower one, on one CPU and with lengths that are known.
 * Bad at: a short job that comes while a long one runs, which waits for all of it;
 * long jobs beside enough short ones, which starve (Linux unloads the policy after
 * 30 seconds of that); shares. With predictions it is as good as they are. No user
 * has a reason to declare bursts honestly.
 *
 * @knob alpha_percent percent 0 100  weight of the last burst (default 50)
 * @knob initial_ns ns 1 10000000000  first prediction of a task (default 10 ms)
 * @priority burst when free
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @starvation-free no  short tasks that keep coming go before a long one, and nothing preempts
 * @source W. E. Smith, Various Optimizers for Single-Stage Production, 1956;
 *         A. Silberschatz et al., Operating System Concepts, section 5.3.2
 *
 * Read next: policies/srtf.bpf.c, where a shorter job preempts.
 */
#include <scx/common.bpf.h>
#include <scx/idle.h>

char _license[] SEC("license") = "GPL";

#define SJF_DSQ 0

const volatile u32 alpha_percent = 50;
const volatile u64 initial_ns = 10000000;

#include <scx/policy/burst.h>

s32 BPF_STRUCT_OPS(sjf_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_only(p, prev_cpu, wake_flags);
}

void BPF_STRUCT_OPS(sjf_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
		return;
	}
	tc->has_yielded = false;
	scx_bpf_dsq_insert_vtime(p, SJF_DSQ, SCX_SLICE_INF, left_ns(p, tc), enq_flags);
	kick_idle_cpu(p, enq_flags);
}

/* @prev comes here with its burst unfinished only if it yielded. */
void BPF_STRUCT_OPS(sjf_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);

	if ((!tc || tc->has_yielded) && take_and_pass_on(SJF_DSQ, cpu))
		return;
	if (!prev || !tc)
		return;
	/* A task that yields while no other waits has lost its slice. */
	tc->has_yielded = false;
	scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
}

void BPF_STRUCT_OPS(sjf_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->exec_ns = p->se.sum_exec_runtime;
}

void BPF_STRUCT_OPS(sjf_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->used_ns += exec_ns_since(p, &tc->exec_ns);
}

void BPF_STRUCT_OPS(sjf_quiescent, struct task_struct *p, u64 deq_flags)
{
	end_burst(p, deq_flags);
}

bool BPF_STRUCT_OPS(sjf_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tc = task_ctx(from);

	return yield_slice(from, to, tc ? &tc->has_yielded : NULL);
}

s32 BPF_STRUCT_OPS(sjf_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return init_burst(p);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(sjf_init)
{
	return scx_bpf_create_dsq(SJF_DSQ, -1);
}

SCX_OPS_DEFINE(sjf_ops,
	       .select_cpu = (void *)sjf_select_cpu,
	       .enqueue = (void *)sjf_enqueue,
	       .dispatch = (void *)sjf_dispatch,
	       .running = (void *)sjf_running,
	       .stopping = (void *)sjf_stopping,
	       .quiescent = (void *)sjf_quiescent,
	       .yield = (void *)sjf_yield,
	       .init_task = (void *)sjf_init_task,
	       .init = (void *)sjf_init,
	       /* A task that exits is not left behind one that runs without a slice. */
	       .flags = SCX_OPS_ENQ_EXITING,
	       .name = "sjf");
