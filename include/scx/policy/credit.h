/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * credit.h - what the credit scheduler of report 3 and Xen's share: queues per CPU
 * and class, an accounting once per period, and how tasks move between CPUs.
 *
 * A CPU serves its UNDER queue before its OVER queue. An accounting gives out
 * credits; what waits in OVER or PARKED then goes to the queue of the class that it
 * has by now.
 *
 * Included after the knobs slice_ns, period_ns and balance, and after struct task_ctx,
 * which has `class`, `waits_in`, `exec_ns` and, for what the accounting settles while its
 * CPU does, `lock`. The policy defines class_now(), charge(),
 * take() and begin_period().
 *
 * Read next: policies/credit_report.bpf.c.
 */
#include <scx/dsq.h>
#include <scx/running.h>
#include <scx/task_attr.h>
#include <scx/task_ctx.h>
#include <scx/policy/percpu.h>

enum { CLASS_BOOST, CLASS_UNDER, CLASS_OVER, CLASS_PARKED, NR_CLASSES };

DEFINE_TASK_CTX(struct task_ctx);

#define CREDITS_MAX 1000000	/* of one task */
/* Accountings that a late one makes up for: no task may hoard or owe more in xen. */
#define HOARD_PERIODS 16

static u64 period; /* how many there were; written by the accounting only */
/*
 * Tasks in the queues of a class, of all CPUs; atomic. A task is counted until it
 * runs, so this may be too large for a moment: a hint where to look.
 */
static u64 nr_queued[NR_CLASSES];

/* Give @tc what it is due since it was last looked at. Return: its class now. */
static u32 class_now(struct task_ctx *tc);
/* Charge the CPU time since the last call. */
static void charge(struct task_struct *p, struct task_ctx *tc);
/* Take a task for @cpu that comes before one of @prev_class; NR_CLASSES: there is none. */
static void take(s32 cpu, u32 prev_class);
/* Begin the next period. */
static void begin_period(void);

static u64 dsq_of(s32 cpu, u32 class)
{
	return (u64)(u32)cpu * NR_CLASSES + class;
}

/* The task's credits or, without any, its weight. */
static u64 credits_of(struct task_struct *p, const struct task_attr *attr)
{
	u64 credits = p->scx.weight;

	if (task_attr_given(attr, TASK_ATTR_CREDITS))
		credits = attr->credits > 0 ? attr->credits : 0;
	return credits < CREDITS_MAX ? credits : CREDITS_MAX;
}

/*
 * Add @nr_periods times @gain_ns, up to @max_ns; without ever computing a product
 * that does not fit.
 */
static s64 add_up(s64 sum_ns, u64 nr_periods, u64 gain_ns, s64 max_ns)
{
	if (sum_ns >= max_ns)
		return max_ns;
	if (gain_ns && nr_periods > (u64)(max_ns - sum_ns) / gain_ns)
		return max_ns;
	return sum_ns + (s64)(nr_periods * gain_ns);
}

/* @class: that of the queue the task is in now; NR_CLASSES: none. */
static void count_in(struct task_ctx *tc, u32 class)
{
	u32 before = __sync_lock_test_and_set(&tc->waits_in, class);
	u64 *nr;

	nr = ARRAY_ELEM_PTR(nr_queued, before, NR_CLASSES);
	if (nr)
		__sync_fetch_and_sub(nr, 1);
	nr = ARRAY_ELEM_PTR(nr_queued, class, NR_CLASSES);
	if (nr)
		__sync_fetch_and_add(nr, 1);
}

/* Queue @p on its CPU, in the queue of its class. */
static void insert(struct task_struct *p, struct task_ctx *tc, u64 enq_flags)
{
	count_in(tc, tc->class);
	scx_bpf_dsq_insert(p, dsq_of(scx_bpf_task_cpu(p), tc->class), slice_ns, enq_flags);
}

/* ---- what runs ----------------------------------------------------------- */

/*
 * For ops.dispatch. With a slice, @prev continues if no task was taken for its place; if
 * it is parked it gets none and, where SCX_OPS_ENQ_LAST is set, is enqueued.
 */
static void choose(s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);

	if (prev && tc) {
		charge(prev, tc);
		tc->class = class_now(tc);
	}
	take(cpu, tc ? tc->class : NR_CLASSES);
	if (!prev || !tc || tc->class == CLASS_PARKED || scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) > 0)
		return;
	scx_bpf_task_set_slice(prev, slice_ns);
	note_running(cpu, tc->class, 0);
}

/* For ops.running. */
static void begin_run(struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	count_in(tc, NR_CLASSES);
	tc->exec_ns = p->se.sum_exec_runtime;
	note_running(scx_bpf_task_cpu(p), tc->class, 0);
}

/* For ops.stopping. */
static void end_run(struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	charge(p, tc);
	note_idle(scx_bpf_task_cpu(p));
}

/* ---- between CPUs -------------------------------------------------------- */

/* Move the first task of a queue, or the last one, that may run on @cpu. */
static bool move_one(u64 from_id, u64 to_id, s32 cpu, u64 iter_flags)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, from_id, iter_flags) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, to_id, 0))
			return true;
	}
	return false;
}

/*
 * Take a task of @class from another CPU: one of those where at least @nr_min
 * wait, the first after @cpu or, if @longest, the one with the longest queue.
 */
static bool pull(s32 cpu, u32 class, s32 nr_min, bool longest, u64 iter_flags)
{
	u64 *nr_everywhere = ARRAY_ELEM_PTR(nr_queued, class, NR_CLASSES);
	u32 nr_cpus = scx_bpf_nr_cpu_ids();
	u64 longest_id = 0;
	s32 nr_longest = 0;
	int i;

	if (!nr_everywhere || !*nr_everywhere)
		return false;
	bpf_for(i, 1, nr_cpus) {
		u64 id = dsq_of((s32)(((u32)cpu + (u32)i) % nr_cpus), class);
		s32 nr = scx_bpf_dsq_nr_queued(id);

		if (nr < nr_min)
			continue;
		if (!longest) {
			if (move_one(id, SCX_DSQ_LOCAL, cpu, iter_flags))
				return true;
		} else if (nr > nr_longest) {
			nr_longest = nr;
			longest_id = id;
		}
	}
	return nr_longest && move_one(longest_id, SCX_DSQ_LOCAL, cpu, iter_flags);
}

static s32 nr_waiting(s32 cpu)
{
	return scx_bpf_dsq_nr_queued(dsq_of(cpu, CLASS_BOOST)) +
	       scx_bpf_dsq_nr_queued(dsq_of(cpu, CLASS_UNDER)) +
	       scx_bpf_dsq_nr_queued(dsq_of(cpu, CLASS_OVER));
}

/* One task, from the longest queue to the shortest. Return: whether it helped. */
static bool push(void)
{
	s32 nr_cpus = (s32)scx_bpf_nr_cpu_ids();
	s32 longest = 0, shortest = 0, nr_longest = -1, nr_shortest = 0;
	s32 cpu;

	bpf_for(cpu, 0, nr_cpus) {
		s32 nr = nr_waiting(cpu) + (running_key(cpu, 0) != RUNNING_NONE);

		if (nr_longest < 0 || nr < nr_shortest) {
			shortest = cpu;
			nr_shortest = nr;
		}
		if (nr > nr_longest) {
			longest = cpu;
			nr_longest = nr;
		}
	}
	if (nr_longest < nr_shortest + 2)
		return false;
	return move_one(dsq_of(longest, CLASS_OVER), dsq_of(shortest, CLASS_OVER), shortest,
			SCX_DSQ_ITER_REV) ||
	       move_one(dsq_of(longest, CLASS_UNDER), dsq_of(shortest, CLASS_UNDER), shortest,
			SCX_DSQ_ITER_REV);
}

/* ---- the accounting, once per period ------------------------------------- */

/* Tasks of this queue that are of another class by now go to that class's queue. */
static void resort(s32 cpu, u32 class)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_of(cpu, class), 0) {
		struct task_ctx *tc = task_ctx(p);
		u32 now;

		if (!tc)
			continue;
		now = class_now(tc);
		if (now == class)
			continue;
		if (!scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, dsq_of(cpu, now), 0))
			continue;
		tc->class = now;
		count_in(tc, now);
	}
}

static int on_period(void *map, u32 *key, struct period_timer *t)
{
	s32 nr_cpus = (s32)scx_bpf_nr_cpu_ids();
	u64 now_ns = bpf_ktime_get_ns();
	bool is_waited = false;
	s32 cpu;
	int i;

	/* It may come late, but the time that it gives out has passed all the same. */
	bpf_for(i, 0, HOARD_PERIODS) {
		begin_period();
		t->next_ns += period_ns;
		if (time_before(now_ns, t->next_ns))
			break;
	}
	bpf_for(cpu, 0, nr_cpus) {
		resort(cpu, CLASS_OVER);
		resort(cpu, CLASS_PARKED);
		is_waited |= nr_waiting(cpu) > 0;
	}
	if (balance == BALANCE_PUSH) {
		bpf_for(cpu, 0, nr_cpus) {
			if (!push())
				break;
		}
	}
	/* A CPU may be idle beside what was unparked, pushed, or can be pulled. */
	if (is_waited) {
		bpf_for(cpu, 0, nr_cpus)
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
	set_period_timer(t, period_ns);
	return 0;
}

/* For ops.init. */
static s32 init_credits(void)
{
	s32 err = create_dsqs((s32)scx_bpf_nr_cpu_ids() * NR_CLASSES);

	return err ? err : start_periods(period_ns);
}
