/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * credit.bpf.c - tasks spend credits while they run, and are given new ones (report 3).
 *
 * Each CPU has its queues. Every period_ns all accounts are filled up, and who is
 * in credit waits in UNDER, the others in OVER; a CPU serves UNDER first.
 *
 *	runs: balance -= time          every period: balance += what it is given
 *
 *	           wakes up, in credit                cap used up
 *	BOOST <--------------------------   UNDER   ---------------> PARKED
 *	  first tick, end of its turn -->     |  ^  <--- next period
 *	                             balance  v  |  balance
 *	                              spent  OVER   filled up
 *
 * mode report is the report's: a thread pays credits_per_ms, gains its initial credits
 * every period, and debts go down to the smallest int. Note what follows: with N
 * runnable threads on a CPU, one pays 60 credits (30 ms) in N periods and gains N
 * times its own; if all have more than 60 / N, nobody ever leaves UNDER, and the
 * credits do nothing at all. Threads are dealt to the CPUs in turn.
 *
 * mode xen is Xen's: what is given out in a period is the CPU time that there is,
 * in proportion to credits, among the tasks that want to run. Nobody is given more
 * than one CPU or its cap (percent of one CPU); the rest goes to the others. Who
 * wakes up in credit is boosted, and preempts. A CPU takes from another one rather
 * than run a task that is worse off than one waiting there.
 *
 * Good at: shares and limits for long-running tasks on several CPUs (mode xen).
 * Bad at: latency among tasks that compute: a turn is 30 ms and all in UNDER are
 * equal. Pushing evens out the lengths of queues, whoever is in them: shares then hold
 * on each CPU only. Boost can be gamed: it is lost at a tick only. A CPU that runs dry may
 * look at all others, and each accounting looks at all tasks in OVER. mode report is
 * unfair as soon as the credits matter: they are a limit for those who have few,
 * and nothing at all for those who have enough.
 *
 * Pulling as in the report leaves a CPU idle beside another one's two waiting
 * threads, and takes the tail of UNDER only.
 *
 * @knob mode enum report=0,xen=1  whose credits (default xen)
 * @knob slice_ns ns 1 10000000000  turn (default 30 ms)
 * @knob period_ns ns 1000000 10000000000  between two accountings (default 30 ms)
 * @knob credits_per_ms count 1 1000  price of running; mode report (default 2)
 * @knob balance enum none=0,pull=1,longest=2,push=3  pull from the first or from the
 *       longest queue, push from the longest to the shortest each period (default pull)
 * @knob wakeup_boost bool 0 1  boost; mode xen (default 1)
 * @work-conserving no  pulling leaves two waiting, push waits for a period, caps park
 * @source report 3, section 4; L. Cherkasova, D. Gupta and A. Vahdat, Comparison of
 *         the three CPU schedulers in Xen, 2007
 *
 * tidy: long, because a policy is one file, and its two modes are compared in it.
 *
 * Read next: policies/cfs.bpf.c, proportional shares with finer turns.
 */
#include <scx/common.bpf.h>
#include <scx/task_attr.h>

char _license[] SEC("license") = "GPL";

enum { MODE_REPORT, MODE_XEN };
enum { BALANCE_NONE, BALANCE_PULL, BALANCE_LONGEST, BALANCE_PUSH };
enum { CLASS_BOOST, CLASS_UNDER, CLASS_OVER, CLASS_PARKED, NR_CLASSES };

const volatile u32 mode = MODE_XEN;
const volatile u64 slice_ns = 30000000;
const volatile u64 period_ns = 30000000;
const volatile u32 credits_per_ms = 2;
const volatile u32 balance = BALANCE_PULL;
const volatile u32 wakeup_boost = 1;

#define MS_NS 1000000ULL
#define CREDITS_MAX 1000000	/* of one task */
#define INT_MAX 0x7fffffffULL
#define PULL_MIN 3		/* the report takes where more than two wait */
#define GAIN_SHIFT 10		/* `gain` is in 1/1024 ns per credit */
/*
 * How much a task may hoard or owe, in periods (mode xen). A turn of everyone else
 * must fit in, or time to wait would be lost: 8 tasks of one slice each do.
 */
#define HOARD_PERIODS 16
#define DEBT_PERIODS 64
#define NR_BUCKETS 64		/* a power of two */
/* No debt takes longer to work off: Linux ends a policy when a task waits for 30 s. */
#define REPAY_NS 10000000000ULL

/* All times that may be owed are signed. */
struct task_ctx {
	s64 balance_ns;		/* CPU time its credits still buy */
	s64 cap_ns;		/* CPU time its cap still allows; mode xen */
	u64 exec_ns;		/* its CPU time when it was last charged */
	u64 period;		/* up to which it was given its due */
	u64 gain;		/* same, for mode xen; see the global */
	u64 credits;		/* initial credits, or weight */
	u64 cap_percent;	/* 0: none */
	u64 weight;		/* its part of active_credits */
	u64 limit_ns;		/* its part of limited_ns; not 0: it is limited */
	u64 joined;		/* period in which it began to share */
	u64 leaves;		/* period up to which it shares, if it lingers */
	u32 class;
	u32 waits_in;		/* class in whose nr_queued it is counted; NR_CLASSES: none */
	bool is_active;		/* shares in what is given out (mode xen) */
	bool lingers;		/* is active although it sleeps */
	bool is_known;		/* has had its first credits */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

struct accounting {
	struct bpf_timer timer;
	u64 next_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct accounting);
} accountings SEC(".maps");

/* Class of what runs on a CPU; NR_CLASSES: nothing. Others read it as a hint. */
static u32 running_class[SCX_CPUS_MAX];

/* Written by the accounting only: */
static u64 period;		/* how many there were */
static u64 gain;		/* sum of what one credit was ever given */
static u64 rate;		/* by how much `gain` grew last */
static u64 gains[NR_BUCKETS];	/* `gain` after the last periods */
/* Atomic; mode xen: */
static u64 nr_runnable;		/* tasks */
static u64 active_credits;	/* of active tasks that are not limited */
static u64 limited_ns;		/* per period, of those that are */
static u64 forfeited_ns;	/* given to tasks that had hoarded enough */
/*
 * What leaves active_credits and limited_ns after each of the next periods. If a
 * task wakes up while its bucket is emptied, it may leave twice; the bucket then
 * holds the opposite, which is put right when its turn comes again.
 */
static struct bucket {
	u64 credits;
	u64 limit_ns;
} buckets[NR_BUCKETS];
static u32 next_cpu;		/* where the next new task goes */
/*
 * Tasks in the queues of a class, of all CPUs; atomic. A task is counted until it
 * runs, so this may be too large for a moment: a hint where to look.
 */
static u64 nr_queued[NR_CLASSES];

static struct task_ctx *task_ctx(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

static u64 dsq_of(s32 cpu, u32 class)
{
	return (u64)(u32)cpu * NR_CLASSES + class;
}

static void count_in(struct task_ctx *tc, u32 class)
{
	u32 before = tc->waits_in;
	u64 *nr;

	tc->waits_in = class;
	nr = ARRAY_ELEM_PTR(nr_queued, before, NR_CLASSES);
	if (nr)
		__sync_fetch_and_sub(nr, 1);
	nr = ARRAY_ELEM_PTR(nr_queued, class, NR_CLASSES);
	if (nr)
		__sync_fetch_and_add(nr, 1);
}

/* ---- accounts ---------------------------------------------------------- */

/* Return: whether they have changed. */
static bool read_attributes(struct task_struct *p, struct task_ctx *tc)
{
	struct task_attr *attr = task_attr(p);
	u64 credits = p->scx.weight;
	u64 cap_percent = 0;
	bool is_change;

	if (task_attr_given(attr, TASK_ATTR_CAP))
		cap_percent = attr->cap_percent;
	if (task_attr_given(attr, TASK_ATTR_CREDITS))
		credits = attr->credits > 0 ? attr->credits : 0;
	if (credits > CREDITS_MAX)
		credits = CREDITS_MAX;
	if (!credits && mode == MODE_XEN)
		credits = 1;
	is_change = credits != tc->credits || cap_percent != tc->cap_percent;
	tc->credits = credits;
	tc->cap_percent = cap_percent;
	return is_change;
}

static u64 credit_ns(u64 credits)
{
	return credits * (MS_NS / credits_per_ms);
}

/* CPU time per period that the task may have at most. */
static u64 limit_ns_of(const struct task_ctx *tc)
{
	if (tc->cap_percent && tc->cap_percent < 100)
		return period_ns * tc->cap_percent / 100;
	return period_ns;
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

/* What an active task is due for the periods up to @until. */
static u64 due_ns_until(const struct task_ctx *tc, u64 until)
{
	u64 gain_then = gain;

	if (tc->limit_ns)
		return tc->limit_ns * (until - tc->period);
	if (period - until >= NR_BUCKETS)	/* so long ago: as was planned */
		return tc->balance_ns < (s64)period_ns ?
		       (u64)((s64)period_ns - tc->balance_ns) : 0;
	if (period != until)
		gain_then = gains[until % NR_BUCKETS];
	return tc->weight * (gain_then - tc->gain) >> GAIN_SHIFT;
}

/* What an active task is due for one period at the present rate. */
static u64 each_ns(const struct task_ctx *tc)
{
	return tc->limit_ns ? tc->limit_ns : tc->weight * rate >> GAIN_SHIFT;
}

/* Debts that would take too long to work off are forgiven. */
static void limit_debt(struct task_ctx *tc)
{
	u64 max_ns = period_ns * DEBT_PERIODS;
	u64 repaid_ns = each_ns(tc) * (REPAY_NS / period_ns);

	if (mode == MODE_REPORT)
		max_ns = credit_ns(INT_MAX + 1);
	else if (repaid_ns && repaid_ns < max_ns)
		max_ns = repaid_ns;
	if (tc->balance_ns < -(s64)max_ns)
		tc->balance_ns = -(s64)max_ns;
}

static void settle_xen(struct task_ctx *tc, u64 now)
{
	s64 max_ns = (s64)(period_ns * HOARD_PERIODS);
	u64 limit_ns = limit_ns_of(tc);
	bool has_left = tc->lingers && tc->leaves <= now;

	if (tc->is_active)
		tc->balance_ns += (s64)due_ns_until(tc, has_left ? tc->leaves :
								   now);
	if (has_left) {
		/* The accounting took its part away meanwhile. */
		tc->is_active = false;
		tc->lingers = false;
		tc->weight = 0;
		tc->limit_ns = 0;
	}
	if (tc->balance_ns > max_ns) {
		__sync_fetch_and_add(&forfeited_ns,
				     (u64)(tc->balance_ns - max_ns));
		tc->balance_ns = max_ns;
	}
	tc->cap_ns = add_up(tc->cap_ns, now - tc->period, limit_ns,
			    (s64)(limit_ns * HOARD_PERIODS));
	tc->gain = gain;
	tc->period = now;
	limit_debt(tc);
}

/* Give the task what it is due since it was last looked at. */
static void settle(struct task_ctx *tc)
{
	u64 now = period;

	if (now == tc->period)
		return;
	if (mode == MODE_XEN) {
		settle_xen(tc, now);
		return;
	}
	tc->balance_ns = add_up(tc->balance_ns, now - tc->period,
				credit_ns(tc->credits),
				(s64)credit_ns(INT_MAX));
	tc->period = now;
}

/* Take what the task has used since it was last looked at. */
static void charge(struct task_struct *p, struct task_ctx *tc)
{
	s64 used_ns = (s64)(p->se.sum_exec_runtime - tc->exec_ns);

	tc->exec_ns = p->se.sum_exec_runtime;
	settle(tc);
	tc->balance_ns -= used_ns;
	tc->cap_ns -= used_ns;
	limit_debt(tc);
}

static bool is_parked(const struct task_ctx *tc)
{
	return mode == MODE_XEN && tc->cap_percent &&
	       tc->cap_percent < 100 && tc->cap_ns <= 0;
}

static u32 class_of(const struct task_ctx *tc)
{
	if (is_parked(tc))
		return CLASS_PARKED;
	if (mode == MODE_XEN)
		return tc->balance_ns >= 0 ? CLASS_UNDER : CLASS_OVER;
	return tc->balance_ns > 0 ? CLASS_UNDER : CLASS_OVER;
}

/* ---- who shares, and who is limited (mode xen) ---------------------------- */

static void leave_shares(struct task_ctx *tc)
{
	if (tc->limit_ns)
		__sync_fetch_and_sub(&limited_ns, tc->limit_ns);
	else
		__sync_fetch_and_sub(&active_credits, tc->weight);
	tc->limit_ns = 0;
	tc->weight = 0;
}

static void join_shares(struct task_ctx *tc, bool is_limited)
{
	if (is_limited) {
		tc->limit_ns = limit_ns_of(tc);
		__sync_fetch_and_add(&limited_ns, tc->limit_ns);
	} else {
		tc->weight = tc->credits;
		__sync_fetch_and_add(&active_credits, tc->weight);
	}
}

/*
 * A task whose part of the machine exceeds what it may have is given that limit,
 * and is left out where the rest is shared; which makes the others' part larger,
 * so that another one may reach its limit when it is looked at next. Not before an
 * accounting has reckoned with it: `rate` is that of a machine without it.
 */
static void review_shares(struct task_ctx *tc)
{
	bool exceeds;

	if (!tc->is_active || tc->joined == period)
		return;
	exceeds = (tc->credits * rate >> GAIN_SHIFT) > limit_ns_of(tc);
	if (exceeds == !!tc->limit_ns)
		return;
	leave_shares(tc);
	join_shares(tc, exceeds);
}

/*
 * A task that sleeps goes on sharing until it is in credit by one period, or one
 * that sleeps most of the time would be poor whenever it wakes up; but no longer,
 * or what it does not use would be missing for the others.
 */
static void linger(struct task_ctx *tc)
{
	s64 missing_ns = (s64)period_ns - tc->balance_ns;
	u64 gain_ns = each_ns(tc);
	struct bucket *bucket;
	u64 nr_periods = 0;

	if (missing_ns > 0 && gain_ns)
		nr_periods = (u64)missing_ns / gain_ns + 1;
	if (nr_periods >= NR_BUCKETS)
		nr_periods = NR_BUCKETS - 1;
	if (!nr_periods) {
		leave_shares(tc);
		tc->is_active = false;
		return;
	}
	tc->lingers = true;
	tc->leaves = tc->period + nr_periods;
	bucket = &buckets[tc->leaves % NR_BUCKETS];
	__sync_fetch_and_add(&bucket->credits, tc->weight);
	__sync_fetch_and_add(&bucket->limit_ns, tc->limit_ns);
}

static void stop_lingering(struct task_ctx *tc)
{
	struct bucket *bucket = &buckets[tc->leaves % NR_BUCKETS];

	tc->lingers = false;
	__sync_fetch_and_sub(&bucket->credits, tc->weight);
	__sync_fetch_and_sub(&bucket->limit_ns, tc->limit_ns);
}

void BPF_STRUCT_OPS(credit_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	bool is_change;

	if (!tc)
		return;
	__sync_fetch_and_add(&nr_runnable, 1);
	settle(tc);
	if (tc->lingers)
		stop_lingering(tc);
	is_change = read_attributes(p, tc);
	if (tc->is_active && is_change) {
		leave_shares(tc);
		tc->is_active = false;
	}
	if (!tc->is_known) {
		tc->is_known = true;
		tc->balance_ns = mode == MODE_XEN ? 0 :
				 (s64)credit_ns(tc->credits);
		tc->cap_ns = (s64)limit_ns_of(tc);
	}
	if (mode != MODE_XEN || tc->is_active)
		return;
	tc->is_active = true;
	tc->joined = period;
	join_shares(tc, false);
}

void BPF_STRUCT_OPS(credit_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	__sync_fetch_and_sub(&nr_runnable, 1);
	count_in(tc, NR_CLASSES);
	settle(tc);
	if (tc->is_active)
		linger(tc);
}

/* ---- the way to a queue -------------------------------------------------- */

/* The report deals new threads out in turn. Return: a CPU, or -1. */
static s32 deal_cpu(struct task_struct *p)
{
	s32 cpu = (s32)(__sync_fetch_and_add(&next_cpu, 1) %
			scx_bpf_nr_cpu_ids());

	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ? cpu : -1;
}

s32 BPF_STRUCT_OPS(credit_select_cpu, struct task_struct *p, s32 prev_cpu,
		   u64 wake_flags)
{
	struct task_ctx *tc = task_ctx(p);
	bool is_idle = false;
	s32 cpu = -1;

	if (mode == MODE_XEN)
		/* Not behind a waker that may run on: another CPU is idle. */
		cpu = scx_bpf_select_cpu_dfl(p, prev_cpu,
					     wake_flags & ~SCX_WAKE_SYNC, &is_idle);
	if (!is_idle && (wake_flags & SCX_WAKE_FORK))
		cpu = deal_cpu(p);
	if (cpu < 0)
		cpu = prev_cpu;
	if (mode == MODE_REPORT)
		is_idle = scx_bpf_test_and_clear_cpu_idle(cpu);
	if (!is_idle || !tc)
		return cpu;
	settle(tc);
	if (is_parked(tc))
		return cpu;
	tc->class = class_of(tc);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	return cpu;
}

/* What is boosted does not wait for the end of a turn. */
static void preempt(s32 cpu, u32 class)
{
	u32 *running = ARRAY_ELEM_PTR(running_class, cpu, SCX_CPUS_MAX);

	if (running && *running != NR_CLASSES && *running > class)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(credit_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	s32 cpu = scx_bpf_task_cpu(p);
	s32 idle_cpu;

	if (!tc) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		return;
	}
	settle(tc);
	review_shares(tc);
	tc->class = class_of(tc);
	if (mode == MODE_XEN && wakeup_boost && tc->class == CLASS_UNDER &&
	    (enq_flags & SCX_ENQ_WAKEUP))
		tc->class = CLASS_BOOST;
	if ((enq_flags & SCX_ENQ_LAST) && tc->class != CLASS_PARKED) {
		/* Its cap was refilled just now; nobody would look for it. */
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		return;
	}
	count_in(tc, tc->class);
	scx_bpf_dsq_insert(p, dsq_of(cpu, tc->class), slice_ns, enq_flags);
	if (tc->class == CLASS_PARKED)
		return;
	if (tc->class == CLASS_BOOST)
		preempt(cpu, CLASS_BOOST);
	if (mode == MODE_REPORT || balance == BALANCE_NONE ||
	    (enq_flags & SCX_ENQ_CPU_SELECTED))
		return;
	/* It made way, or is bound here; another CPU may be idle. */
	idle_cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (idle_cpu >= 0)
		scx_bpf_kick_cpu(idle_cpu, SCX_KICK_IDLE);
}

/* ---- the choice ---------------------------------------------------------- */

/* Take the first task of a queue, or the last one, that may run on @cpu. */
static bool take_from(u64 dsq_id, s32 cpu, u64 iter_flags)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_id, iter_flags) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
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
			if (take_from(id, cpu, iter_flags))
				return true;
		} else if (nr > nr_longest) {
			nr_longest = nr;
			longest_id = id;
		}
	}
	return nr_longest && take_from(longest_id, cpu, iter_flags);
}

/* mode report: only a CPU that has nothing at all looks at the others. */
static void dispatch_report(s32 cpu, u32 prev_class)
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

/* mode xen: someone better off elsewhere comes before someone worse off here. */
static void dispatch_xen(s32 cpu, u32 prev_class)
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

static void note_running(s32 cpu, u32 class)
{
	u32 *running = ARRAY_ELEM_PTR(running_class, cpu, SCX_CPUS_MAX);

	if (running)
		*running = class;
}

/*
 * With a slice, @prev goes on if nobody was taken for its place; if it is parked
 * it gets none and, since SCX_OPS_ENQ_LAST is set, is enqueued.
 */
void BPF_STRUCT_OPS(credit_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 prev_class = NR_CLASSES;
	struct task_ctx *tc = NULL;

	if (prev && (prev->scx.flags & SCX_TASK_QUEUED))
		tc = task_ctx(prev);
	if (prev && tc) {
		charge(prev, tc);
		review_shares(tc);
		tc->class = class_of(tc);
		prev_class = tc->class;
	}
	if (mode == MODE_XEN)
		dispatch_xen(cpu, prev_class);
	else
		dispatch_report(cpu, prev_class);
	if (!prev || prev_class >= CLASS_PARKED ||
	    scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) > 0)
		return;
	scx_bpf_task_set_slice(prev, slice_ns);
	note_running(cpu, prev_class);
}

/* A boost lasts until the first tick; a cap is checked at every one. */
void BPF_STRUCT_OPS(credit_tick, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc || mode != MODE_XEN)
		return;
	charge(p, tc);
	tc->class = class_of(tc);
	note_running(scx_bpf_task_cpu(p), tc->class);
	if (tc->class == CLASS_PARKED)
		scx_bpf_task_set_slice(p, 0);
}

void BPF_STRUCT_OPS(credit_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	count_in(tc, NR_CLASSES);
	tc->exec_ns = p->se.sum_exec_runtime;
	note_running(scx_bpf_task_cpu(p), tc->class);
}

void BPF_STRUCT_OPS(credit_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	charge(p, tc);
	note_running(scx_bpf_task_cpu(p), NR_CLASSES);
}

/* ---- the accounting, once per period -------------------------------------- */

/*
 * What there is to give: the time of the CPUs that can be busy, and what was
 * forfeited, but not more than as much again. Limited tasks have theirs already.
 */
static void give_out(void)
{
	u64 nr_cpus = scx_bpf_nr_cpu_ids();
	u64 nr_busy = nr_runnable < nr_cpus ? nr_runnable : nr_cpus;
	u64 budget_ns = nr_busy * period_ns;
	u64 extra_ns = __sync_lock_test_and_set(&forfeited_ns, 0);
	u64 credits = active_credits;

	budget_ns += extra_ns < budget_ns ? extra_ns : budget_ns;
	budget_ns -= limited_ns < budget_ns ? limited_ns : budget_ns;
	rate = (budget_ns << GAIN_SHIFT) / (credits ? credits : 1);
	gain += rate;
}

/* The period that has just been given out is the last one for these. */
static void empty_bucket(struct bucket *bucket)
{
	u64 credits = __sync_lock_test_and_set(&bucket->credits, 0);
	u64 limit_ns = __sync_lock_test_and_set(&bucket->limit_ns, 0);

	__sync_fetch_and_sub(&active_credits, credits);
	__sync_fetch_and_sub(&limited_ns, limit_ns);
}

/* Tasks of this queue that are of another class by now go to that class's queue. */
static void resort(s32 cpu, u32 class)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_of(cpu, class), 0) {
		struct task_ctx *tc = task_ctx(p);
		u32 now;

		if (!tc)
			continue;
		settle(tc);
		review_shares(tc);
		now = class_of(tc);
		if (now == class)
			continue;
		if (!scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, dsq_of(cpu, now), 0))
			continue;
		tc->class = now;
		count_in(tc, now);
	}
}

static s32 nr_waiting(s32 cpu)
{
	return scx_bpf_dsq_nr_queued(dsq_of(cpu, CLASS_BOOST)) +
	       scx_bpf_dsq_nr_queued(dsq_of(cpu, CLASS_UNDER)) +
	       scx_bpf_dsq_nr_queued(dsq_of(cpu, CLASS_OVER));
}

/* Move one task from the tail of a queue of @from to one of @to. */
static bool push_one(s32 from, s32 to, u32 class)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq_of(from, class), SCX_DSQ_ITER_REV) {
		if (!bpf_cpumask_test_cpu(to, p->cpus_ptr))
			continue;
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, dsq_of(to, class), 0))
			return true;
	}
	return false;
}

/* One task, from the longest queue to the shortest. Return: whether it helped. */
static bool push(void)
{
	s32 nr_cpus = (s32)scx_bpf_nr_cpu_ids();
	s32 longest = 0, shortest = 0, nr_longest = -1, nr_shortest = 0;
	s32 cpu;

	bpf_for(cpu, 0, nr_cpus) {
		u32 *running = ARRAY_ELEM_PTR(running_class, cpu, SCX_CPUS_MAX);
		s32 nr = nr_waiting(cpu);

		nr += running && *running != NR_CLASSES;
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
	return push_one(longest, shortest, CLASS_OVER) ||
	       push_one(longest, shortest, CLASS_UNDER);
}

static void begin_period(void)
{
	if (mode == MODE_XEN) {
		give_out();
		gains[(period + 1) % NR_BUCKETS] = gain;
	}
	period++;
	if (mode == MODE_XEN)
		empty_bucket(&buckets[period % NR_BUCKETS]);
}

static int account(void *map, u32 *key, struct accounting *a)
{
	s32 nr_cpus = (s32)scx_bpf_nr_cpu_ids();
	u64 now_ns = bpf_ktime_get_ns();
	bool is_waited = false;
	s32 cpu;
	int i;

	/* It may come late, but the time that it gives out has passed all the same. */
	bpf_for(i, 0, HOARD_PERIODS) {
		begin_period();
		a->next_ns += period_ns;
		if (time_before(now_ns, a->next_ns))
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
	if (!time_before(now_ns, a->next_ns))
		a->next_ns = now_ns + period_ns;
	bpf_timer_start(&a->timer, a->next_ns, BPF_F_TIMER_ABS);
	return 0;
}

s32 BPF_STRUCT_OPS(credit_init_task, struct task_struct *p,
		   struct scx_init_task_args *args)
{
	struct task_ctx *tc = bpf_task_storage_get(&task_ctxs, p, NULL,
						   BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!tc)
		return -12;	/* ENOMEM */
	tc->period = period;
	tc->gain = gain;
	tc->waits_in = NR_CLASSES;
	return 0;
}

/* What it hoarded or owes goes with it, or the others would never get it. */
void BPF_STRUCT_OPS(credit_exit_task, struct task_struct *p,
		    struct scx_exit_task_args *args)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc || mode != MODE_XEN)
		return;
	settle(tc);
	if (tc->lingers)
		stop_lingering(tc);
	if (tc->is_active)
		leave_shares(tc);
	tc->is_active = false;
	if (tc->balance_ns > 0)
		__sync_fetch_and_add(&forfeited_ns, (u64)tc->balance_ns);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(credit_init)
{
	s32 nr_queues = (s32)scx_bpf_nr_cpu_ids() * NR_CLASSES;
	struct accounting *a;
	u32 key = 0;
	s32 err;
	s32 i;

	bpf_for(i, 0, SCX_CPUS_MAX)
		note_running(i, NR_CLASSES);
	bpf_for(i, 0, nr_queues) {
		err = scx_bpf_create_dsq(i, -1);
		if (err)
			return err;
	}
	a = bpf_map_lookup_elem(&accountings, &key);
	if (!a)
		return -2;	/* ENOENT */
	bpf_timer_init(&a->timer, &accountings, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&a->timer, account);
	a->next_ns = bpf_ktime_get_ns() + period_ns;
	return (s32)bpf_timer_start(&a->timer, a->next_ns, BPF_F_TIMER_ABS);
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
	       .init = (void *)credit_init,
	       .flags = SCX_OPS_ENQ_LAST,
	       .name = "credit");
