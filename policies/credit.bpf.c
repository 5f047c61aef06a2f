/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * credit.bpf.c - Xen's credit scheduler: shares and caps on queues per CPU.
 *
 * Every period_ns the CPU time that there is is given out, in proportion to credits,
 * among the tasks that want to run. No task is given more than one CPU or its cap
 * (percent of one CPU); the rest goes to the others. Tasks in credit wait in UNDER,
 * the others in OVER; a CPU serves UNDER first, and takes from another CPU rather
 * than run a task that is worse off than one waiting there.
 *
 *	runs: balance -= time          every period: balance += what it is given
 *
 *	           wakes up, in credit                cap used up
 *	BOOST <--------------------------   UNDER   ---------------> PARKED
 *	  first tick, end of a slice  -->     |  ^  <--- next period
 *	                             balance  v  |  balance
 *	                              spent  OVER   filled up
 *
 * A task that wakes up in credit is boosted, and preempts.
 *
 * Good at: shares and limits for long-running tasks on several CPUs.
 * Bad at: latency among tasks that compute: a slice is 30 ms and all in UNDER are
 * equal. Pushing evens out the lengths of queues, whatever tasks are in them: shares
 * then hold on each CPU only. Boost can be gamed: it is lost at a tick only. A CPU
 * that runs dry may look at all others, and each accounting at all tasks in OVER.
 *
 * @knob slice_ns ns 1 10000000000  slice (default 30 ms)
 * @knob period_ns ns 1000000 10000000000  between two accountings (default 30 ms)
 * @knob balance enum none=0,pull=1,longest=2,push=3  pull from the first or from the
 *       longest queue, push from the longest to the shortest each period (default pull)
 * @knob wakeup_boost bool 0 1  boost (default 1)
 * @knob groups enum none=0,flat=1  whether cgroups have quotas, and parts, and divide these by weight, however many
 *       tasks are in them, as Xen's domains do among their active CPUs (default none: tasks are alone)
 * @quotas with groups
 * @work-conserving no  pulling leaves two waiting, push waits for a period, caps park
 * @starvation-free no  tasks that are boosted again and again keep those in UNDER waiting
 * @source L. Cherkasova, D. Gupta and A. Vahdat, Comparison of the three CPU
 *         schedulers in Xen, 2007; report 3, section 4, which set out from it
 *
 * Read next: scx/policy/credit_accounts.h; policies/cfs.bpf.c, shares with finer slices.
 */
#include <scx/common.bpf.h>
#include <scx/idle.h>

char _license[] SEC("license") = "GPL";

enum { BALANCE_NONE, BALANCE_PULL, BALANCE_LONGEST, BALANCE_PUSH };

const volatile u64 slice_ns = 30000000;
const volatile u64 period_ns = 30000000;
const volatile u32 balance = BALANCE_PULL;
const volatile u32 wakeup_boost = 1;
const volatile u32 groups = 0;

#include <scx/policy/groups.h>
#include <scx/policy/credit_accounts.h>

/* Tasks of a throttled group are parked, and looked at in each accounting, too. */
static void park(u64 dsq_id, u64 parked_id)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_id, 0) {
		struct task_ctx *tc = task_ctx(p);

		if (!tc || !is_throttled(tc->group.nr) ||
		    !scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, parked_id, 0))
			continue;
		tc->class = CLASS_PARKED;
		count_in(tc, CLASS_PARKED);
	}
}

static void park_throttled(void)
{
	s32 nr_cpus = (s32)scx_bpf_nr_cpu_ids();
	s32 cpu, class;

	bpf_for(cpu, 0, nr_cpus) {
		bpf_for(class, CLASS_BOOST, CLASS_PARKED)
			park(dsq_of(cpu, class), dsq_of(cpu, CLASS_PARKED));
	}
}

static void put_back_tasks(void)
{
	s32 nr_cpus = (s32)scx_bpf_nr_cpu_ids();
	s32 cpu;

	bpf_for(cpu, 0, nr_cpus)
		resort(cpu, CLASS_PARKED);
}

void BPF_STRUCT_OPS(credit_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	group_enter(&tc->group, own_credits(p));
	join(p, tc);
}

void BPF_STRUCT_OPS(credit_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	count_in(tc, NR_CLASSES);
	leave(tc);
	group_leave(&tc->group);
}

/* ---- the way to a queue -------------------------------------------------- */

s32 BPF_STRUCT_OPS(credit_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tc = task_ctx(p);
	bool is_idle;
	s32 cpu = select_idle_cpu(p, prev_cpu, wake_flags, &is_idle);

	if (!is_idle && (wake_flags & SCX_WAKE_FORK))
		cpu = deal_cpu(p, prev_cpu);
	if (!is_idle || !tc)
		return cpu;
	bpf_spin_lock(&tc->lock);
	settle(tc);
	bpf_spin_unlock(&tc->lock);
	if (class_of(tc) == CLASS_PARKED)
		return cpu;
	tc->class = class_of(tc);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	return cpu;
}

/* What is boosted does not wait for the end of a slice. */
static void preempt(s32 cpu)
{
	u64 class = running_key(cpu, 0);

	if (class != RUNNING_NONE && class > CLASS_BOOST)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(credit_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		return;
	}
	tc->class = class_now(tc);
	if (wakeup_boost && tc->class == CLASS_UNDER && (enq_flags & SCX_ENQ_WAKEUP))
		tc->class = CLASS_BOOST;
	if ((enq_flags & SCX_ENQ_LAST) && tc->class != CLASS_PARKED) {
		/* Its cap was refilled just now; no CPU would look for it. */
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		return;
	}
	insert(p, tc, enq_flags);
	if (tc->class == CLASS_BOOST)
		preempt(scx_bpf_task_cpu(p));
	if (tc->class != CLASS_PARKED && balance != BALANCE_NONE)
		kick_idle_cpu(p, enq_flags);
}

/* ---- the choice ---------------------------------------------------------- */

/* A task that is better off on another CPU comes before one worse off here. */
static void take(s32 cpu, u32 prev_class)
{
	bool pulls = balance == BALANCE_PULL || balance == BALANCE_LONGEST;
	int class;

	bpf_for(class, CLASS_BOOST, CLASS_PARKED) {
		if ((u32)class > prev_class)
			return;
		if (scx_bpf_dsq_move_to_local(dsq_of(cpu, class)))
			return;
		if (!pulls || (u32)class == prev_class)
			continue;
		if (pull(cpu, class, 1, balance == BALANCE_LONGEST, 0))
			return;
	}
}

void BPF_STRUCT_OPS(credit_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);

	if (prev && tc)
		charge(prev, tc);
	if (must_set_aside && __sync_lock_test_and_set(&must_set_aside, 0))
		park_throttled();
	choose(cpu, prev);
}

/* A boost lasts until the first tick; a cap is checked at every one. */
void BPF_STRUCT_OPS(credit_tick, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	charge(p, tc);
	tc->class = class_of(tc);
	note_running(scx_bpf_task_cpu(p), tc->class, 0);
	if (tc->class == CLASS_PARKED)
		scx_bpf_task_set_slice(p, 0);
}

void BPF_STRUCT_OPS(credit_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		quota_begin(p, &tc->group);
	begin_run(p);
}

void BPF_STRUCT_OPS(credit_stopping, struct task_struct *p, bool runnable)
{
	end_run(p);
}

s32 BPF_STRUCT_OPS(credit_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tc = create_task_ctx(p);

	if (!tc)
		return -ENOMEM;
	tc->period = period;
	tc->gain = gain;
	tc->waits_in = NR_CLASSES;
	group_init_task(&tc->group, args);
	return 0;
}

DEFINE_GROUP_OPS(credit)

void BPF_STRUCT_OPS(credit_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		close_account(tc);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(credit_init)
{
	return init_credits();
}

SCX_OPS_DEFINE(credit_ops,
	       .select_cpu = (void *)credit_select_cpu,
	       .runnable = (void *)credit_runnable,
	       .quiescent = (void *)credit_quiescent,
	       .enqueue = (void *)credit_enqueue,
	       .dispatch = (void *)credit_dispatch,
	       .tick = (void *)credit_tick,
	       .running = (void *)credit_running,
	       .stopping = (void *)credit_stopping,
	       .init_task = (void *)credit_init_task,
	       .exit_task = (void *)credit_exit_task,
	       GROUP_OPS(credit),
	       .init = (void *)credit_init,
	       .flags = SCX_OPS_ENQ_LAST,
	       .name = "credit");
