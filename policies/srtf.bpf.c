/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * srtf.bpf.c - shortest remaining time first: the task that will be done first runs.
 *
 * Each time a task becomes runnable it begins a burst, which ends when it blocks.
 * One queue for all CPUs, in the order of how much of their burst tasks have left. A
 * task that becomes runnable preempts the one that has the most left, if that is
 * more than its own; otherwise no task is preempted.
 *
 * The length of a burst is the task's attribute `burst` or, where none was declared,
 * a prediction from its past bursts (scx/policy/burst.h).
 *
 * Good at: mean turnaround. On one CPU, with lengths that are known, no policy has a
 * lower one (Schrage 1968); short interactive bursts pass all others.
 * Bad at: long jobs, which starve beside enough short ones (Linux unloads the
 * policy after 30 seconds of that); shares; and tasks that change their behaviour,
 * for as many bursts as the prediction takes to follow. No user has a reason to
 * declare bursts honestly. Each wake-up looks at all CPUs.
 *
 * @knob alpha_percent percent 0 100  weight of the last burst (default 50)
 * @knob initial_ns ns 1 10000000000  first prediction of a task (default 10 ms)
 * @priority burst at once
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @starvation-free no  tasks with less left that keep coming go before one with more
 * @source L. Schrage, A Proof of the Optimality of the Shortest Remaining Processing
 *         Time Discipline, 1968; A. Silberschatz et al., Operating System Concepts,
 *         section 5.3.2 (prediction)
 *
 * Read next: policies/sjf.bpf.c, the same without preemption.
 */
#include <scx/common.bpf.h>
#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/running.h>

char _license[] SEC("license") = "GPL";

#define SRTF_DSQ 0

const volatile u32 alpha_percent = 50;
const volatile u64 initial_ns = 10000000;

#include <scx/policy/burst.h>

s32 BPF_STRUCT_OPS(srtf_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_only(p, prev_cpu, wake_flags);
}

void BPF_STRUCT_OPS(srtf_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	u64 left;

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
		return;
	}
	tc->has_yielded = false;
	left = left_ns(p, tc);
	scx_bpf_dsq_insert_vtime(p, SRTF_DSQ, SCX_SLICE_INF, left, enq_flags);
	preempt_last(p, left, scx_bpf_now());
}

/*
 * When there is nothing to run, @prev included, the CPU is noted as idle. After a
 * yield any task goes first: else the yield would have no effect.
 */
void BPF_STRUCT_OPS(srtf_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);
	u64 left;

	if (!prev || !tc) {
		if (!take_and_preempt(SRTF_DSQ, cpu, 0, ~0ULL, scx_bpf_now()))
			note_idle(cpu);
		return;
	}
	tc->used_ns += exec_ns_since(prev, &tc->exec_ns);
	left = left_ns(prev, tc);
	if ((tc->has_yielded || is_queued_before(SRTF_DSQ, cpu, left)) &&
	    take_and_preempt(SRTF_DSQ, cpu, 0, ~0ULL, scx_bpf_now()))
		return;
	/* A task that yields while no other waits has lost its slice. */
	tc->has_yielded = false;
	scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
	note_running(cpu, left, scx_bpf_now());
}

void BPF_STRUCT_OPS(srtf_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	tc->exec_ns = p->se.sum_exec_runtime;
	note_running(scx_bpf_task_cpu(p), left_ns(p, tc), scx_bpf_now());
}

void BPF_STRUCT_OPS(srtf_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->used_ns += exec_ns_since(p, &tc->exec_ns);
}

void BPF_STRUCT_OPS(srtf_quiescent, struct task_struct *p, u64 deq_flags)
{
	end_burst(p, deq_flags);
}

/*
 * For a burst that has outlived its length; and for a wake-up that crossed another
 * CPU's choice, see running.h.
 */
void BPF_STRUCT_OPS(srtf_tick, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	u64 left;

	if (!tc)
		return;
	tc->used_ns += exec_ns_since(p, &tc->exec_ns);
	left = left_ns(p, tc);
	note_running(cpu, left, scx_bpf_now());
	if (is_queued_before(SRTF_DSQ, cpu, left))
		scx_bpf_task_set_slice(p, 0);
}

bool BPF_STRUCT_OPS(srtf_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tc = task_ctx(from);

	return yield_slice(from, to, tc ? &tc->has_yielded : NULL);
}

s32 BPF_STRUCT_OPS(srtf_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return init_burst(p);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(srtf_init)
{
	return scx_bpf_create_dsq(SRTF_DSQ, -1);
}

SCX_OPS_DEFINE(srtf_ops,
	       .select_cpu = (void *)srtf_select_cpu,
	       .enqueue = (void *)srtf_enqueue,
	       .dispatch = (void *)srtf_dispatch,
	       .running = (void *)srtf_running,
	       .stopping = (void *)srtf_stopping,
	       .quiescent = (void *)srtf_quiescent,
	       .tick = (void *)srtf_tick,
	       .yield = (void *)srtf_yield,
	       .init_task = (void *)srtf_init_task,
	       .init = (void *)srtf_init,
	       /* A task that exits is not left behind one that runs without a slice. */
	       .flags = SCX_OPS_ENQ_EXITING,
	       .name = "srtf");
