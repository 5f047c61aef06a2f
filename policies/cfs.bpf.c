/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * cfs.bpf.c - completely fair: the task that has had the least runs next.
 *
 * Every task has a virtual time: its CPU time, divided by its weight (100 is nice
 * 0). One queue, in the order of virtual times; a free CPU takes the first task.
 * A slice is the task's part of latency_ns, by weight, but not less than
 * min_granularity_ns. vtime_now is the furthest that any task has come to run at.
 *
 *	asleep for long:  vtime := vtime_now - sleeper_credit_ns   (runs soon)
 *	asleep shortly:   vtime stays                             (cannot gain)
 *	new:              vtime := vtime_now + up to one slice     (cannot gain)
 *	woken, and ahead of what runs by wakeup_granularity_ns: preempts it
 *
 * Good at: shares in proportion to weights, for any mix; tasks that sleep a lot get
 * the CPU at once when they wake up.
 * Bad at: batches, which it slices up and finishes all late; deadlines; many wake-ups,
 * each of which may preempt. Its one queue is fair across CPUs at once, but tasks move
 * more often, and many CPUs wait for its lock. No slice is finer than a tick.
 *
 * @knob latency_ns ns 1000 10000000000  in which all tasks run once (default 6 ms)
 * @knob min_granularity_ns ns 1 1000000000  shortest slice (default 750 us)
 * @knob wakeup_granularity_ns ns 0 1000000000  lead to preempt by (default 1 ms)
 * @knob sleeper_credit_ns ns 0 1000000000  lead of a sleeper (default 3 ms)
 * @knob wakeup_preemption bool 0 1  wake-ups preempt (default 1)
 * @knob groups enum none=0,flat=1,tree=2  whether cgroups have quotas, and parts, and divide these by weight, however many
 *       tasks are in them: in one queue, or with a queue for each (default none: tasks are alone)
 * @shares weight within latency_ns
 * @latency wake-up at once
 * @work-conserving yes  a queued task is taken by the first CPU that is free, unless its group is throttled
 * @starvation-free no  a task worth more than one CPU falls behind, and goes before those bound to its CPU
 * @virtual-time yes
 * @quotas with groups
 * @source reports 2 and 4 (SCHED_OTHER); Linux 2.6.23 to 6.5, its defaults on one CPU
 *
 * Read next: policies/credit.bpf.c, shares with a queue per CPU.
 */
#include <scx/common.bpf.h>
#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/task_ctx.h>

char _license[] SEC("license") = "GPL";

#define CFS_DSQ 0 /* with groups=tree that of the root */
/* No task is put back further: Linux ends a policy when a task waits for 30 s. */
#define WAIT_NS_MAX 10000000000ULL
/* Slices of latency_ns on each CPU that a group with too few tasks may be behind; more than it is by waiting. */
#define LAG_SLICES 8

const volatile u64 latency_ns = 6000000;
const volatile u64 min_granularity_ns = 750000;
const volatile u64 wakeup_granularity_ns = 1000000;
const volatile u64 sleeper_credit_ns = 3000000;
const volatile u32 wakeup_preemption = 1;
const volatile u32 groups = 0;

#include <scx/policy/group_tree.h>

struct task_ctx {
	u64 vtime;   /* weighted ns; wraps */
	u64 exec_ns; /* its CPU time when vtime was last brought up to date */
	u64 load;    /* its weight within total_load */
	struct group_task group;
	bool is_known;	  /* has been runnable before */
	bool has_yielded; /* the first of the queue goes next, even if behind */
};
DEFINE_TASK_CTX(struct task_ctx);

#include <scx/policy/group_aside.h>

/* What runs on a CPU; other CPUs read it without a lock, and may be a slice late. */
static struct cpu_ctx {
	u64 vtime; /* of the running task, at since_ns */
	u64 since_ns;
	u64 weight; /* of the running task, see queue_weight(); 0: nothing runs */
	u32 group;  /* whose queue it is from */
} cpu_ctxs[SCX_CPUS_MAX];

static u64 total_load; /* weight of all runnable and running tasks; atomic */
static u64 vtime_now;  /* a lost update is made up for by the next one */

/* @weight: in 1/GROUP_SCALE. */
static u64 weighted(u64 ns, u64 weight)
{
	return ns * 100 * GROUP_SCALE / weight;
}

/* Return: the weight of a runnable task among all others, in 1/GROUP_SCALE. */
static u64 weight_of(const struct task_struct *p, const struct task_ctx *tc)
{
	return group_part(&tc->group, p->scx.weight);
}

/* Of all runnable and running tasks, in 1/GROUP_SCALE. */
static u64 load_now(void)
{
	return (groups == GROUPS_NONE ? total_load : groups_of[0].load) * GROUP_SCALE;
}

/* ---- the queue of a task: the one that there is, or its group's ---------------- */

static u32 queue_of(const struct task_ctx *tc)
{
	return group_queue(tc->group.in);
}

/* Return: its weight among what is in its queue, in 1/GROUP_SCALE. */
static u64 queue_weight(const struct task_struct *p, const struct task_ctx *tc)
{
	return groups == GROUPS_TREE ? p->scx.weight * GROUP_SCALE : weight_of(p, tc);
}

/* In 1/GROUP_SCALE. */
static u64 queue_load(const struct task_ctx *tc)
{
	const struct group *g = ARRAY_ELEM_PTR(groups_of, queue_of(tc), GROUPS_MAX);

	return groups == GROUPS_TREE && g ? g->load * GROUP_SCALE : load_now();
}

/* How far its queue has come. */
static u64 clock_of(const struct task_ctx *tc)
{
	const struct group *g = ARRAY_ELEM_PTR(groups_of, queue_of(tc), GROUPS_MAX);

	return groups == GROUPS_TREE && g ? g->clock : vtime_now;
}

static void advance_clock(const struct task_ctx *tc)
{
	if (groups == GROUPS_TREE)
		tree_begin(tc->group.in, tc->vtime);
	else if (time_before(vtime_now, tc->vtime))
		vtime_now = tc->vtime;
}

static u64 slice_ns_of(const struct task_struct *p, const struct task_ctx *tc)
{
	u64 weight = weight_of(p, tc);
	u64 load = load_now() > weight ? load_now() : weight;
	u64 slice_ns = latency_ns * weight * scx_bpf_nr_cpu_ids() / load;

	if (slice_ns > latency_ns)
		slice_ns = latency_ns;
	return slice_ns > min_granularity_ns ? slice_ns : min_granularity_ns;
}

/*
 * Charge the CPU time since the last call. A slice of a whole tick can take a very
 * light task so far ahead that the others would need minutes to get there.
 */
static void charge(struct task_struct *p, struct task_ctx *tc)
{
	u64 wait_ns_max = WAIT_NS_MAX * scx_bpf_nr_cpu_ids();
	u64 used_ns = exec_ns_since(p, &tc->exec_ns);
	u64 load = queue_load(tc);
	u64 latest = clock_of(tc) + weighted(wait_ns_max, load ? load : GROUP_SCALE);

	tc->vtime += weighted(used_ns, queue_weight(p, tc));
	if (time_after(tc->vtime, latest))
		tc->vtime = latest;
	if (groups == GROUPS_TREE)
		tree_charge(tc->group.in, used_ns, wait_ns_max);
	quota_charge(p, &tc->group);
}

/* Its part of the latency is known now; when it was queued it was another one. */
static void begin_slice(struct task_struct *p, const struct task_ctx *tc)
{
	struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, scx_bpf_task_cpu(p), SCX_CPUS_MAX);

	scx_bpf_task_set_slice(p, slice_ns_of(p, tc));
	/*
	 * Linux takes a task that ends off its queue and puts it back at the end of
	 * its slice; new tasks would begin behind that.
	 */
	if (!(p->flags & PF_EXITING))
		advance_clock(tc);
	if (!cc)
		return;
	cc->vtime = tc->vtime;
	cc->since_ns = scx_bpf_now();
	cc->weight = queue_weight(p, tc);
	cc->group = tc->group.in;
}

s32 BPF_STRUCT_OPS(cfs_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_and_insert_unthrottled(p, prev_cpu, wake_flags, latency_ns);
}

/* Comes before enqueue, and also for a task that goes straight to an idle CPU. */
void BPF_STRUCT_OPS(cfs_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	u32 nr_came;
	u64 debit, earliest;

	if (!tc)
		return;
	/* The virtual time of another queue says nothing in this one. */
	if (groups == GROUPS_TREE && tc->group.in != tc->group.nr)
		tc->is_known = false;
	tc->load = p->scx.weight;
	__sync_fetch_and_add(&total_load, tc->load);
	nr_came = group_enter(&tc->group, tc->load);
	if (groups == GROUPS_TREE)
		tree_place(tc->group.in, nr_came, sleeper_credit_ns);
	earliest = clock_of(tc) - sleeper_credit_ns;
	if (!tc->is_known) {
		/* Of a light task it is not known yet how long that would be. */
		tc->is_known = true;
		debit = weighted(slice_ns_of(p, tc), queue_weight(p, tc));
		tc->vtime = clock_of(tc) + (debit < latency_ns ? debit : latency_ns);
	} else if ((enq_flags & SCX_ENQ_WAKEUP) && time_before(tc->vtime, earliest)) {
		tc->vtime = earliest;
	}
}

void BPF_STRUCT_OPS(cfs_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	__sync_fetch_and_sub(&total_load, tc->load);
	group_leave(&tc->group);
}

/* A task without budget is as one that sleeps, but has no sleeper's credit. */
static void count_out(struct task_struct *p, struct task_ctx *tc)
{
	group_uncount(&tc->group, GROUP_ASIDE);
}

static u64 count_in_again(struct task_struct *p, struct task_ctx *tc)
{
	u32 nr_came = group_recount(&tc->group);
	u64 earliest;

	if (groups == GROUPS_TREE)
		tree_place(tc->group.in, nr_came, 0);
	earliest = clock_of(tc);
	if (time_before(tc->vtime, earliest))
		tc->vtime = earliest;
	return tc->vtime;
}

/* @tc, with @weight in its queue, was woken on @cpu. */
static void maybe_preempt(s32 cpu, const struct task_ctx *tc, u64 weight)
{
	struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, cpu, SCX_CPUS_MAX);
	u64 running_weight = cc ? cc->weight : 0;
	u64 vtime = tc->vtime, running;

	if (!cc || !running_weight)
		return;
	running = cc->vtime;
	if (groups == GROUPS_TREE) {
		tree_climb(tc->group.in, path_of(cc->group), &vtime, &weight);
		tree_climb(cc->group, path_of(tc->group.in), &running, &running_weight);
	}
	if (time_before(vtime + weighted(wakeup_granularity_ns, weight),
			running + weighted(scx_bpf_now() - cc->since_ns, running_weight)))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(cfs_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	u64 vtime = tc ? tc->vtime : vtime_now;

	scx_bpf_dsq_insert_vtime(p, tc ? queue_of(tc) : CFS_DSQ, latency_ns, vtime, enq_flags);
	if (wants_preemption(p, tc, enq_flags) && wakeup_preemption &&
	    (enq_flags & SCX_ENQ_WAKEUP) && tc)
		maybe_preempt(scx_bpf_task_cpu(p), tc, queue_weight(p, tc));
}

/* Take what is first on @cpu, unless @rival is (NULL: there is none). Return: whether a task was taken. */
static bool take(s32 cpu, const struct task_ctx *rival)
{
	struct tree_rival r = { .slice_ns = latency_ns, .nr = TREE_EMPTY };

	if (groups != GROUPS_TREE)
		return (!rival || is_queued_before(CFS_DSQ, cpu, rival->vtime + 1)) &&
		       scx_bpf_dsq_move_to_local(CFS_DSQ);
	if (rival)
		r = (struct tree_rival){ rival->vtime, rival->load, latency_ns, rival->group.in };
	return tree_take(cpu, &r, LAG_SLICES * latency_ns * scx_bpf_nr_cpu_ids());
}

/* @prev is in no queue: it is compared with what is. */
void BPF_STRUCT_OPS(cfs_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);
	bool has_yielded;

	if (prev && tc)
		charge(prev, tc);
	set_throttled_aside();
	if (!prev || !tc || is_throttled(tc->group.in)) {
		take(cpu, NULL);
		return;
	}
	has_yielded = tc->has_yielded;
	tc->has_yielded = false;
	if (take(cpu, has_yielded ? NULL : tc))
		return;
	/* It continues, with the policy's slice and not of the kernel's length. */
	begin_slice(prev, tc);
}

void BPF_STRUCT_OPS(cfs_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	tc->exec_ns = p->se.sum_exec_runtime;
	note_not_aside(p, tc);
	quota_begin(p, &tc->group);
	if (groups == GROUPS_TREE)
		tree_count_running(tc->group.in, true);
	begin_slice(p, tc);
}

void BPF_STRUCT_OPS(cfs_tick, struct task_struct *p)
{
	struct task_ctx *tc = groups == GROUPS_NONE ? NULL : task_ctx(p);

	if (tc)
		quota_tick(p, &tc->group);
}

void BPF_STRUCT_OPS(cfs_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);
	struct cpu_ctx *cc = ARRAY_ELEM_PTR(cpu_ctxs, scx_bpf_task_cpu(p), SCX_CPUS_MAX);

	if (tc) {
		charge(p, tc);
		if (groups == GROUPS_TREE)
			tree_count_running(tc->group.in, false);
	}
	if (cc)
		cc->weight = 0;
}

bool BPF_STRUCT_OPS(cfs_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tc = task_ctx(from);

	return yield_slice(from, to, tc ? &tc->has_yielded : NULL);
}

s32 BPF_STRUCT_OPS(cfs_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tc = create_task_ctx(p);

	if (!tc)
		return -ENOMEM;
	group_init_task(&tc->group, args);
	return 0;
}

DEFINE_GROUP_OPS(cfs)

s32 BPF_STRUCT_OPS_SLEEPABLE(cfs_init)
{
	return create_dsqs(groups == GROUPS_NONE ? 1 : NR_GROUP_DSQS);
}

SCX_OPS_DEFINE(cfs_ops,
	       .select_cpu = (void *)cfs_select_cpu,
	       .runnable = (void *)cfs_runnable,
	       .quiescent = (void *)cfs_quiescent,
	       .enqueue = (void *)cfs_enqueue,
	       .dispatch = (void *)cfs_dispatch,
	       .running = (void *)cfs_running,
	       .tick = (void *)cfs_tick,
	       .stopping = (void *)cfs_stopping,
	       .yield = (void *)cfs_yield,
	       .init_task = (void *)cfs_init_task,
	       GROUP_OPS(cfs),
	       .init = (void *)cfs_init,
	       .flags = SCX_OPS_ENQ_LAST,
	       .name = "cfs");
