/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * eevdf.bpf.c - earliest eligible virtual deadline first: Linux's fair class now.
 *
 * Every task has a virtual time v: its CPU time, divided by its weight. V is the mean
 * of all v, weighted: where each would be that had had just its share. V - v is the
 * task's lag; with a lag of 0 or more it is eligible. A task asks for one slice after
 * the other, each with a virtual deadline, one slice's worth after v. Of those that
 * are eligible the one with the earliest deadline runs, until its slice is used.
 *
 *	lag < 0: had too much, waits   V   lag >= 0: eligible
 *	                               |
 *	  ... v ======slice======> deadline ...      (weights stretch the time)
 *
 *	starts:   v := V, deadline := v + half a slice; may preempt
 *	sleeps:   lag is kept, up to two slices. A task that owes counts in V on, until it
 *	          would be chosen ("delayed dequeue"): then it owes nothing any more
 *	wakes up: v := V - lag, deadline := v + slice; may preempt. A task that still
 *	          owes keeps its v, and the deadline that it had
 *	yields:   what it had not used of its share, it forgoes
 *
 * Good at: shares in proportion to weights, with a bound: on one CPU no task is ever
 * more than one slice off, as long as slices, and halves of them, are whole ticks. And,
 * unlike cfs, latency apart from shares: a task that asks for short slices runs sooner
 * and more often, and gets no more than its share.
 * Bad at: batches, which it slices up and finishes all late; and deadlines that are
 * not virtual. A decision looks at tasks in the order of deadlines until one is
 * eligible: usually a few, but all at worst (Linux has a tree for it). It has one
 * queue for all CPUs; a task worth more than one CPU forgoes what it cannot use. No
 * slice is finer than a tick. Of tasks that sleep and owe 64 count in V at most.
 *
 * @knob slice_ns ns 100000 100000000  slice (default 3 ms, about that of Linux on 8 CPUs
 *       or more; on n < 8 it is 0.7 ms times 1 + log2 n, rounded down)
 * @knob slice_source enum same=0,burst=1,priority=2  slices are all of slice_ns, the
 *       task's burst, 0.1 to 100 ms, or by priority, as a latency nice: 5 has slice_ns,
 *       each level below half of the last (default same)
 * @knob preempt enum never=0,linux=1,any=2,batch=3  what a wake-up preempts: nothing, as Linux
 *       does, or also a task with a later deadline; batch, as Linux does for SCHED_BATCH: one
 *       that has used its slice while others wait (default linux)
 * @knob tick enum slice=0,group=1  when a tick takes the CPU: when the running task has used its slice, or
 *       also when it is not eligible any more, as in a cgroup beside other runnable tasks, whose ticks
 *       have Linux choose anew in all groups (default slice)
 * @knob groups enum none=0,flat=1,tree=2  whether cgroups have quotas, and parts, and divide these by weight, however many
 *       tasks are in them: in one queue, or with a queue for each, where no task that sleeps and owes is
 *       counted, and one of another group preempts what is not eligible (default none: tasks are alone)
 * @shares weight within slice_ns
 * @latency wake-up within slice_ns
 * @work-conserving yes  a queued task is taken by the first CPU that is free, unless its group is throttled
 * @starvation-free no  lag outlives a sleep: tasks that change weights meanwhile gain what others lose
 * @virtual-time yes
 * @quotas with groups
 * @source I. Stoica and H. Abdel-Wahab, Earliest Eligible Virtual Deadline First, 1995;
 *         Linux since 6.6, kernel/sched/fair.c
 *
 * Read next: scx/policy/eevdf_lag.h; policies/stride.bpf.c, which knows no latency.
 */
#include <scx/common.bpf.h>
#include <scx/dsq.h>
#include <scx/idle.h>

char _license[] SEC("license") = "GPL";

enum { SLICE_SAME, SLICE_BURST, SLICE_PRIORITY };
enum { TICK_SLICE, TICK_GROUP };
enum { PREEMPT_NEVER, PREEMPT_LINUX, PREEMPT_ANY, PREEMPT_BATCH };

#define EEVDF_DSQ 0 /* with groups=tree that of the root */
#define FORGIVE_PASSES_MAX 4

const volatile u64 slice_ns = 3000000;
const volatile u32 slice_source = SLICE_SAME;
const volatile u32 preempt = PREEMPT_LINUX;
const volatile u32 tick = TICK_SLICE;
const volatile u32 groups = 0;

#include <scx/policy/eevdf_lag.h>
#include <scx/policy/eevdf_tree.h>
#include <scx/policy/group_aside.h>

/* What runs on a CPU; other CPUs read it without a lock, and may be a slice late. */
static struct cpu_ctx {
	u64 v;		/* when it was last charged ... */
	u64 charged_ns; /* ... which was then */
	u64 weight;
	u64 deadline;
	u64 protected_v; /* until then it is not preempted while it is eligible */
	u64 slice_ns;	 /* 0: nothing runs */
	u32 group;
} cpu_ctxs[SCX_CPUS_MAX];

/* ---- the way to a queue ------------------------------------------------------- */

/* Comes before enqueue, and also for a task that goes straight to an idle CPU. */
void BPF_STRUCT_OPS(eevdf_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	/* Else it has slept somewhere before, under this policy or not. */
	if (enq_flags & SCX_ENQ_WAKEUP)
		tc->is_new = false;
	/* Its lag in another queue says nothing in this one. */
	if (groups == GROUPS_TREE && tc->group.in != tc->group.nr)
		tc->lag = 0;
	group_enter(&tc->group, p->scx.weight);
	join(p, tc);
}

void BPF_STRUCT_OPS(eevdf_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	leave(p, tc, deq_flags & SCX_DEQ_SLEEP);
	group_leave(&tc->group);
}

s32 BPF_STRUCT_OPS(eevdf_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_and_insert_unthrottled(p, prev_cpu, wake_flags,
						 tick == TICK_GROUP ? 1 : own_slice_ns(p));
}

/* The v of what runs on the CPU of @cc, at @now_ns. */
static u64 running_v(const struct cpu_ctx *cc, u64 now_ns)
{
	/* CPUs' clocks may differ by a little. */
	if (!cc->weight || !time_after(now_ns, cc->charged_ns))
		return cc->v;
	return cc->v + vtime_of(now_ns - cc->charged_ns, cc->weight);
}

/* Whether no task of the queue would be chosen before @tc, which has just come. */
static bool is_next(s32 cpu, const struct task_ctx *tc, u64 mean)
{
	struct task_struct *p;

	if (eevdf_is_delayed_first(mean, tc->deadline))
		return false;
	bpf_for_each(scx_dsq, p, queue_of(tc), 0) {
		struct task_ctx *other = task_ctx(p);

		if (!time_before(p->scx.dsq_vtime, tc->deadline))
			return true;
		if (other && is_eligible(other, mean) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			return false;
	}
	return true;
}

/* Whether the group of @tc, or @tc beside a group, takes the CPU of @cc: if that is not eligible any more. */
static bool preempts_group(const struct task_ctx *tc, const struct cpu_ctx *cc)
{
	struct tree_entity woken = { tc->v, tc->deadline, tc->weight, tc->group.in };
	struct tree_entity runs = { cc->v, cc->deadline, cc->weight, cc->group };
	u64 mean;

	climb(&woken, path_of(cc->group));
	climb(&runs, path_of(tc->group.in));
	if (time_after(tc->charged_ns, cc->charged_ns))
		runs.v += vtime_of(tc->charged_ns - cc->charged_ns, runs.weight ? runs.weight : 1);
	mean = mean_of(woken.nr, tc->charged_ns);
	if (!is_entity_eligible(&woken, mean))
		return false;
	return !is_entity_eligible(&runs, mean) ||
	       (preempt == PREEMPT_ANY && time_before(woken.deadline, runs.deadline));
}

/*
 * @tc has come to @cpu, and takes it if it would be chosen now and the running task is
 * not eligible any more, or has a longer slice. Otherwise that one continues, but only
 * for the slice with which it got the CPU ("run to parity" in Linux): once it has
 * stayed longer, being chosen again or alone, it is compared with every task that
 * comes, and with all others at each tick. See Linux's check_preempt_wakeup_fair().
 *
 * All is as of the moment in which @tc became runnable. A task that was alone until
 * then is just at V, and stays for its slice; some microseconds later it would be
 * ahead.
 */
static void maybe_preempt(s32 cpu, const struct task_ctx *tc)
{
	struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, cpu, SCX_CPUS_MAX);
	u64 mean, v;

	if (preempt == PREEMPT_NEVER || !cc || !cc->slice_ns || !cc->weight)
		return;
	/* @tc is not in the queue yet. Linux asks again if two or more were there. */
	if (preempt == PREEMPT_BATCH && !scx_bpf_dsq_nr_queued(queue_of(tc)) && !nr_delayed)
		return;
	v = running_v(cc, tc->charged_ns);
	if (time_before_eq(cc->protected_v, v)) {
		/* It takes part in the choice itself. */
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return;
	}
	if (preempt == PREEMPT_BATCH)
		return;
	if (groups == GROUPS_TREE && tc->group.in != cc->group) {
		if (preempts_group(tc, cc))
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return;
	}
	mean = mean_of(queue_of(tc), tc->charged_ns);
	if (!is_eligible(tc, mean) || !is_next(cpu, tc, mean))
		return;
	if (time_before_eq(v, mean + vtime_of(SLICE_SLACK_NS, cc->weight))) {
		/* The running task is eligible, too. */
		if (preempt == PREEMPT_LINUX && tc->slice_ns >= cc->slice_ns)
			return;
		if (!time_before(tc->deadline, cc->deadline))
			return;
	}
	cc->protected_v = v;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(eevdf_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		return;
	}
	tc->has_yielded = false;
	scx_bpf_dsq_insert_vtime(p, queue_of(tc), tick == TICK_GROUP ? 1 : slice_left_ns(tc),
				 tc->deadline, enq_flags);
	if (!wants_preemption(p, tc, enq_flags))
		return;
	if ((enq_flags & SCX_ENQ_WAKEUP) || tc->is_new)
		maybe_preempt(scx_bpf_task_cpu(p), tc);
}

/* ---- the choice ----------------------------------------------------------------- */

/* Context: the task is charged. */
static void note_running(s32 cpu, const struct task_ctx *tc)
{
	struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, cpu, SCX_CPUS_MAX);

	if (!cc)
		return;
	cc->v = tc->v;
	cc->charged_ns = tc->charged_ns;
	cc->weight = tc->weight;
	cc->deadline = tc->deadline;
	cc->slice_ns = tc->slice_ns;
	cc->group = tc->group.in;
}

/*
 * Take the first task of a queue that is eligible and may run on @cpu, unless the deadline
 * of @rival comes before its own. Return: whether there was one.
 */
static bool take_eligible(u32 queue, s32 cpu, u64 mean, const struct task_ctx *rival)
{
	struct task_struct *p;
	bool is_taken = false;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task_ctx *tc = task_ctx(p);

		if (rival && time_before(rival->deadline, p->scx.dsq_vtime))
			break;
		if (!tc || !is_eligible(tc, mean) || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		is_taken = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
		if (is_taken)
			break;
	}
	return is_taken;
}

/* With groups=tree. Return: whether a task was taken; if not, @rival runs on (NULL: there is none). */
static bool take_from_tree(s32 cpu, const struct task_ctx *rival)
{
	u32 queue = choose_queue(cpu, rival);

	if (queue == TREE_RIVAL)
		return false;
	if (queue < GROUPS_MAX && (take_eligible(queue, cpu, mean_of(queue, scx_bpf_now()), NULL) ||
				   scx_bpf_dsq_move_to_local(queue)))
		return true;
	return !rival && move_first_to_local(GROUPS_MAX);
}

/*
 * Take delayed tasks off that Linux would choose before the queue and the task that would
 * run on (@weight 0: there is none), as often as that makes others eligible. Not static:
 * see eevdf_forgive().
 */
__noinline u32 eevdf_forgive_first(s32 cpu, u64 v, u64 weight, u64 prev_deadline)
{
	u64 now_ns = scx_bpf_now();

	for (u32 i = 0; i < FORGIVE_PASSES_MAX; i++) {
		u32 which = FORGIVE_ELIGIBLE;
		u64 mean = mean_of(EEVDF_DSQ, now_ns), deadline = 0;
		struct task_struct *p;

		if (weight && is_eligible_at(v, weight, mean)) {
			which = FORGIVE_EARLIER;
			deadline = prev_deadline;
		}
		bpf_for_each(scx_dsq, p, EEVDF_DSQ, 0) {
			struct task_ctx *tc = task_ctx(p);

			if (which == FORGIVE_EARLIER && time_before(deadline, p->scx.dsq_vtime))
				break;
			if (tc && is_eligible(tc, mean) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
				which = FORGIVE_EARLIER;
				deadline = p->scx.dsq_vtime;
				break;
			}
		}
		if (!eevdf_forgive(now_ns, which, deadline))
			break;
	}
	return 0;
}

/* Whether a tick of a group leaves @tc the CPU: within the slice with which it got that, while it is eligible. */
static bool is_protected(s32 cpu, const struct task_ctx *tc)
{
	const struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, cpu, SCX_CPUS_MAX);

	return tick == TICK_GROUP && cc && !tc->has_yielded && !is_throttled(tc->group.in) &&
	       time_before(tc->v, cc->protected_v) &&
	       is_eligible(tc, mean_of(queue_of(tc), scx_bpf_now()));
}

/*
 * @prev is in no queue, and takes part if it is eligible and has not yielded. On
 * several CPUs it may happen that no task is eligible that this one could run: the
 * earliest deadline has to do then.
 */
void BPF_STRUCT_OPS(eevdf_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);
	bool takes_part = false;
	u64 mean;

	if (prev && tc) {
		charge(prev, tc);
		if (is_protected(cpu, tc)) {
			scx_bpf_task_set_slice(prev, 1);
			note_running(cpu, tc);
			return;
		}
		if (is_throttled(tc->group.in))
			tc = NULL;
	}
	set_throttled_aside();
	if (groups == GROUPS_TREE) {
		if (take_from_tree(cpu, tc && !tc->has_yielded ? tc : NULL))
			return;
	} else if (nr_delayed) {
		if (!tc && !scx_bpf_dsq_nr_queued(EEVDF_DSQ))
			eevdf_forgive(scx_bpf_now(), FORGIVE_ALL, 0);
		else
			eevdf_forgive_first(cpu, tc ? tc->v : 0,
					    tc && !tc->has_yielded ? tc->weight : 0,
					    tc ? tc->deadline : 0);
	}
	if (groups != GROUPS_TREE && scx_bpf_dsq_nr_queued(EEVDF_DSQ) > 0) {
		mean = mean_of(EEVDF_DSQ, scx_bpf_now());
		takes_part = tc && !tc->has_yielded && is_eligible(tc, mean);
		if (take_eligible(EEVDF_DSQ, cpu, mean, takes_part ? tc : NULL))
			return;
		if (!takes_part && scx_bpf_dsq_move_to_local(EEVDF_DSQ))
			return;
	}
	if (!prev || !tc)
		return;
	/* It continues, until all are compared again at the next tick. */
	tc->has_yielded = false;
	scx_bpf_task_set_slice(prev, 1);
	note_running(cpu, tc);
}

void BPF_STRUCT_OPS(eevdf_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, cpu, SCX_CPUS_MAX);
	struct task_ctx *tc = task_ctx(p);
	u64 now_ns = scx_bpf_now();

	if (!tc || !cc)
		return;
	note_not_aside(p, tc);
	quota_begin(p, &tc->group);
	tc->is_new = false;
	cc->protected_v = tc->deadline;
	tc->exec_ns = p->se.sum_exec_runtime;
	tc->charged_ns = now_ns;
	bpf_spin_lock(&eevdf_lock);
	groups_run(queue_of(tc), now_ns, true);
	bpf_spin_unlock(&eevdf_lock);
	note_running(cpu, tc);
}

void BPF_STRUCT_OPS(eevdf_tick, struct task_struct *p)
{
	struct task_ctx *tc = groups == GROUPS_NONE ? NULL : task_ctx(p);

	if (tc)
		quota_tick(p, &tc->group);
}

void BPF_STRUCT_OPS(eevdf_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);
	struct cpu_ctx *cc;

	if (!tc)
		return;
	charge(p, tc);
	bpf_spin_lock(&eevdf_lock);
	groups_run(queue_of(tc), tc->charged_ns, false);
	bpf_spin_unlock(&eevdf_lock);
	cc = ARRAY_ELEM_PTR(cpu_ctxs, scx_bpf_task_cpu(p), SCX_CPUS_MAX);
	if (cc)
		cc->slice_ns = 0;
}

/* Others go first, eligible or not: else the yield would have no effect. */
bool BPF_STRUCT_OPS(eevdf_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tc = task_ctx(from);

	return yield_slice(from, to, tc ? &tc->has_yielded : NULL);
}

s32 BPF_STRUCT_OPS(eevdf_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tc = create_task_ctx(p);

	if (!tc)
		return -ENOMEM;
	tc->weight = p->scx.weight ? p->scx.weight : 1;
	tc->is_new = args->fork;
	group_init_task(&tc->group, args);
	return 0;
}

DEFINE_GROUP_OPS(eevdf)

/* One that ends owes nothing. */
void BPF_STRUCT_OPS(eevdf_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc && tc->is_delayed)
		end_delay(p, tc, false);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(eevdf_init)
{
	return create_dsqs(groups == GROUPS_NONE ? 1 : NR_GROUP_DSQS);
}

SCX_OPS_DEFINE(eevdf_ops,
	       .select_cpu = (void *)eevdf_select_cpu,
	       .runnable = (void *)eevdf_runnable,
	       .quiescent = (void *)eevdf_quiescent,
	       .enqueue = (void *)eevdf_enqueue,
	       .dispatch = (void *)eevdf_dispatch,
	       .running = (void *)eevdf_running,
	       .tick = (void *)eevdf_tick,
	       .stopping = (void *)eevdf_stopping,
	       .yield = (void *)eevdf_yield,
	       .init_task = (void *)eevdf_init_task,
	       .exit_task = (void *)eevdf_exit_task,
	       GROUP_OPS(eevdf),
	       .init = (void *)eevdf_init,
	       .flags = SCX_OPS_ENQ_LAST,
	       .name = "eevdf");
