/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * edf.bpf.c - earliest deadline first.
 *
 * Each time a task becomes runnable it begins a job, which ends when it blocks, and
 * which is due `deadline` later; that is an attribute of the task. One queue for all
 * CPUs, in the order of when jobs are due. A job that is released preempts the one
 * that is due last, if that is later than its own; there are no slices.
 *
 *	released --> due := now + deadline --> queue, by due --> runs --> blocks
 *	                                        ^                 |
 *	                                        +---- preempted --+
 *
 * Tasks without a deadline come after all that have one, round-robin in slices of slice_ns.
 *
 * Good at: deadlines. On one CPU it meets them all if that can be done at all; for
 * jobs released in each period, and due at its end, up to a utilisation of 1.
 * Bad at: overload, where it spends its time on jobs that are late already, and
 * makes one after the other miss (there is no admission test, and no budget as in
 * Linux's SCHED_DEADLINE: a job that runs for too long hurts all the others). On
 * several CPUs deadlines can be missed at little more than a utilisation of 1, when
 * one long job comes beside short ones (Dhall and Liu 1978). It knows nothing of
 * locks. Each wake-up looks at all CPUs.
 *
 * @knob slice_ns ns 1 10000000000  slice of those without a deadline (default 10 ms)
 * @priority deadline at once
 * @latency wake-up within slice_ns
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @starvation-free no  more work than fits keeps the latest deadlines waiting
 * @source C. L. Liu and J. W. Layland, Scheduling Algorithms for Multiprogramming in
 *         a Hard-Real-Time Environment, 1973
 *
 * Read next: policies/eevdf.bpf.c, deadlines made up to share the CPU.
 */
#include <scx/common.bpf.h>
#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/running.h>
#include <scx/task_attr.h>
#include <scx/task_ctx.h>

char _license[] SEC("license") = "GPL";

#define EDF_DSQ 0
/* Due dates are times of the clock, or this much later: none. */
#define NO_DEADLINE_NS (1ULL << 61)

const volatile u64 slice_ns = 10000000;

struct task_ctx {
	u64 due_ns;    /* without a deadline: when it began to wait, see above */
	u64 used_ns;   /* of its slice, where it has no deadline */
	u64 exec_ns;   /* its CPU time when it was last charged */
	bool is_known; /* has had a job before */
	bool has_yielded;
};
DEFINE_TASK_CTX(struct task_ctx);

static bool has_deadline(const struct task_ctx *tc)
{
	return tc->due_ns < NO_DEADLINE_NS;
}

static u64 slice_of(const struct task_ctx *tc)
{
	return has_deadline(tc) ? SCX_SLICE_INF : slice_ns - tc->used_ns;
}

/* Those without a deadline do not preempt each other: all are equally urgent. */
static u64 urgency_of(const struct task_ctx *tc)
{
	return has_deadline(tc) ? tc->due_ns : NO_DEADLINE_NS;
}

/* Without a deadline the order is that in which slices ended, or tasks came. */
static void begin_turn(struct task_ctx *tc)
{
	tc->used_ns = 0;
	tc->due_ns = NO_DEADLINE_NS + scx_bpf_now();
}

/* Charge the CPU time since the last call; a preempted task has the rest left. */
static void charge(struct task_struct *p, struct task_ctx *tc)
{
	tc->used_ns += exec_ns_since(p, &tc->exec_ns);
	if (!has_deadline(tc) && tc->used_ns >= slice_ns)
		begin_turn(tc);
}

s32 BPF_STRUCT_OPS(edf_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_only(p, prev_cpu, wake_flags);
}

/* A job is released. A task that is merely changed keeps the one it has. */
void BPF_STRUCT_OPS(edf_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_attr *attr = task_attr(p);
	struct task_ctx *tc = task_ctx(p);

	if (!tc || (tc->is_known && !(enq_flags & SCX_ENQ_WAKEUP)))
		return;
	tc->is_known = true;
	if (task_attr_given(attr, TASK_ATTR_DEADLINE) && attr->deadline_ns)
		tc->due_ns = scx_bpf_now() + attr->deadline_ns;
	else
		begin_turn(tc);
}

void BPF_STRUCT_OPS(edf_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		return;
	}
	tc->has_yielded = false;
	scx_bpf_dsq_insert_vtime(p, EDF_DSQ, slice_of(tc), tc->due_ns, enq_flags);
	preempt_last(p, urgency_of(tc), 0);
}

/*
 * Those that are due earlier go before @prev, and its equals if it has yielded. When
 * there is nothing to run, @prev included, the CPU is noted as idle.
 */
void BPF_STRUCT_OPS(edf_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);

	if (!prev || !tc) {
		if (!take_and_preempt(EDF_DSQ, cpu, 0, NO_DEADLINE_NS, 0))
			note_idle(cpu);
		return;
	}
	charge(prev, tc);
	if (is_queued_before(EDF_DSQ, cpu, tc->due_ns + tc->has_yielded) &&
	    take_and_preempt(EDF_DSQ, cpu, 0, NO_DEADLINE_NS, 0))
		return;
	/* It continues, with the policy's slice and not of the kernel's length. */
	tc->has_yielded = false;
	scx_bpf_task_set_slice(prev, slice_of(tc));
	note_running(cpu, urgency_of(tc), 0);
}

void BPF_STRUCT_OPS(edf_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	tc->exec_ns = p->se.sum_exec_runtime;
	note_running(scx_bpf_task_cpu(p), urgency_of(tc), 0);
}

void BPF_STRUCT_OPS(edf_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		charge(p, tc);
}

/* Only for releases that crossed another CPU's choice; see running.h. */
void BPF_STRUCT_OPS(edf_tick, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc && is_queued_before(EDF_DSQ, scx_bpf_task_cpu(p), urgency_of(tc)))
		scx_bpf_task_set_slice(p, 0);
}

bool BPF_STRUCT_OPS(edf_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tc = task_ctx(from);

	if (tc && !to && !has_deadline(tc))
		begin_turn(tc);
	return yield_slice(from, to, tc ? &tc->has_yielded : NULL);
}

s32 BPF_STRUCT_OPS(edf_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return create_task_ctx(p) ? 0 : -ENOMEM;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(edf_init)
{
	return scx_bpf_create_dsq(EDF_DSQ, -1);
}

SCX_OPS_DEFINE(edf_ops,
	       .select_cpu = (void *)edf_select_cpu,
	       .runnable = (void *)edf_runnable,
	       .enqueue = (void *)edf_enqueue,
	       .dispatch = (void *)edf_dispatch,
	       .running = (void *)edf_running,
	       .stopping = (void *)edf_stopping,
	       .tick = (void *)edf_tick,
	       .yield = (void *)edf_yield,
	       .init_task = (void *)edf_init_task,
	       .init = (void *)edf_init,
	       /* A task that exits is not left behind one that runs without a slice. */
	       .flags = SCX_OPS_ENQ_EXITING,
	       .name = "edf");
