/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * credit_report.bpf.c - tasks spend credits while they run, and are given new ones: report 3.
 *
 * Each CPU has two queues: tasks in credit wait in UNDER, the others in OVER, and a
 * CPU serves UNDER first. A task pays credits_per_ms, gains its initial credits every
 * period_ns, and may owe as many as the smallest int. New tasks are dealt to the CPUs
 * in turn.
 *
 *	UNDER --balance spent--> OVER --accounting, balance filled up--> UNDER
 *
 * Note what follows: with N runnable tasks on a CPU, one pays 60 credits (30 ms) in N
 * periods and gains N times its own; if all have more than 60 / N, none ever leaves
 * UNDER, and the credits do nothing at all.
 *
 * Good at: what the report measures; its tables can be reproduced.
 * Bad at: shares; credits are a limit for tasks that have few, and nothing at all for
 * those that have enough. Latency among tasks that compute: a slice is 30 ms and all in
 * UNDER are equal. Pulling leaves a CPU idle beside another one's two waiting tasks,
 * and takes the tail of UNDER only. Pushing evens out the lengths of queues, whatever
 * tasks are in them. Each accounting looks at all tasks in OVER.
 *
 * @knob slice_ns ns 1 10000000000  slice (default 30 ms)
 * @knob period_ns ns 1000000 10000000000  between two accountings (default 30 ms)
 * @knob credits_per_ms count 1 1000  price of running (default 2)
 * @knob balance enum none=0,pull=1,longest=2,push=3  pull from the first or from the
 *       longest queue, push from the longest to the shortest each period (default pull)
 * @work-conserving no  pulling leaves two waiting, and push waits for a period
 * @starvation-free no  tasks that never leave UNDER keep those in OVER waiting
 * @source report 3, section 4
 *
 * Read next: policies/credit.bpf.c, the original in Xen.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

enum { BALANCE_NONE, BALANCE_PULL, BALANCE_LONGEST, BALANCE_PUSH };

const volatile u64 slice_ns = 30000000;
const volatile u64 period_ns = 30000000;
const volatile u32 credits_per_ms = 2;
const volatile u32 balance = BALANCE_PULL;

#define MS_NS 1000000ULL
#define INT_MAX 0x7fffffffULL
#define PULL_MIN 3		/* the report takes where more than two wait */

struct task_ctx {
	struct bpf_spin_lock lock; /* of the account: the accounting settles it, too */
	s64 balance_ns;		   /* CPU time its credits still buy; signed */
	u64 exec_ns;		   /* its CPU time when it was last charged */
	u64 period;		   /* up to which it was given its due */
	u64 credits;		   /* per period */
	u32 class;
	u32 waits_in;  /* class in whose nr_queued it is counted; NR_CLASSES: none */
	bool is_known; /* has had its first credits */
};

#include <scx/policy/credit.h>

static u64 credit_ns(u64 credits)
{
	return credits * (MS_NS / credits_per_ms);
}

/* Context: the account is locked. */
static void settle(struct task_ctx *tc)
{
	u64 now = period;

	if (now == tc->period)
		return;
	tc->balance_ns = add_up(tc->balance_ns, now - tc->period, credit_ns(tc->credits),
				(s64)credit_ns(INT_MAX));
	tc->period = now;
}

static u32 class_now(struct task_ctx *tc)
{
	s64 balance_ns;

	bpf_spin_lock(&tc->lock);
	settle(tc);
	balance_ns = tc->balance_ns;
	bpf_spin_unlock(&tc->lock);
	return balance_ns > 0 ? CLASS_UNDER : CLASS_OVER;
}

static void charge(struct task_struct *p, struct task_ctx *tc)
{
	s64 debt_max_ns = (s64)credit_ns(INT_MAX + 1);
	s64 used_ns = (s64)exec_ns_since(p, &tc->exec_ns);

	bpf_spin_lock(&tc->lock);
	settle(tc);
	tc->balance_ns -= used_ns;
	if (tc->balance_ns < -debt_max_ns)
		tc->balance_ns = -debt_max_ns;
	bpf_spin_unlock(&tc->lock);
}

static void begin_period(void)
{
	period++;
}

void BPF_STRUCT_OPS(credit_report_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	u64 credits = credits_of(p, task_attr(p));

	if (!tc)
		return;
	bpf_spin_lock(&tc->lock);
	settle(tc);
	tc->credits = credits;
	if (!tc->is_known)
		tc->balance_ns = (s64)credit_ns(credits);
	tc->is_known = true;
	bpf_spin_unlock(&tc->lock);
}

void BPF_STRUCT_OPS(credit_report_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	count_in(tc, NR_CLASSES);
	bpf_spin_lock(&tc->lock);
	settle(tc);
	bpf_spin_unlock(&tc->lock);
}

/* A task stays on its CPU, whatever other CPUs are idle. */
s32 BPF_STRUCT_OPS(credit_report_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tc = task_ctx(p);
	s32 cpu = prev_cpu;

	if (wake_flags & SCX_WAKE_FORK)
		cpu = deal_cpu(p, prev_cpu);
	if (!tc || !scx_bpf_test_and_clear_cpu_idle(cpu))
		return cpu;
	tc->class = class_now(tc);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	return cpu;
}

void BPF_STRUCT_OPS(credit_report_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		return;
	}
	tc->class = class_now(tc);
	insert(p, tc, enq_flags);
}

/* Only a CPU that has nothing at all looks at the others. */
static void take(s32 cpu, u32 prev_class)
{
	if (scx_bpf_dsq_move_to_local(dsq_of(cpu, CLASS_UNDER)))
		return;
	if (prev_class == CLASS_UNDER)
		return;
	if (scx_bpf_dsq_move_to_local(dsq_of(cpu, CLASS_OVER)))
		return;
	if (prev_class != NR_CLASSES)
		return;
	if (balance == BALANCE_PULL)
		pull(cpu, CLASS_UNDER, PULL_MIN, false, SCX_DSQ_ITER_REV);
	else if (balance == BALANCE_LONGEST)
		if (!pull(cpu, CLASS_UNDER, 1, true, SCX_DSQ_ITER_REV))
			pull(cpu, CLASS_OVER, 1, true, SCX_DSQ_ITER_REV);
}

void BPF_STRUCT_OPS(credit_report_dispatch, s32 cpu, struct task_struct *prev)
{
	choose(cpu, prev);
}

void BPF_STRUCT_OPS(credit_report_running, struct task_struct *p)
{
	begin_run(p);
}

void BPF_STRUCT_OPS(credit_report_stopping, struct task_struct *p, bool runnable)
{
	end_run(p);
}

s32 BPF_STRUCT_OPS(credit_report_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tc = create_task_ctx(p);

	if (!tc)
		return -ENOMEM;
	tc->period = period;
	tc->waits_in = NR_CLASSES;
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(credit_report_init)
{
	return init_credits();
}

SCX_OPS_DEFINE(credit_report_ops,
	       .select_cpu = (void *)credit_report_select_cpu,
	       .runnable = (void *)credit_report_runnable,
	       .quiescent = (void *)credit_report_quiescent,
	       .enqueue = (void *)credit_report_enqueue,
	       .dispatch = (void *)credit_report_dispatch,
	       .running = (void *)credit_report_running,
	       .stopping = (void *)credit_report_stopping,
	       .init_task = (void *)credit_report_init_task,
	       .init = (void *)credit_report_init,
	       .name = "credit_report");
