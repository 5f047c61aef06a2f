/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * credit_accounts.h - what Xen's credit scheduler gives out, and to which tasks.
 *
 * Every period the CPU time of the machine is given to the active tasks in proportion
 * to their credits. It would take long to visit them all: an accounting only raises
 * `gain`, which is what one credit was ever given, and a task is settled when it is
 * next looked at. A task whose part exceeds its limit is given that limit instead,
 * and does not share in the rest.
 *
 *	runnable --> active --sleeps--> lingers --in credit by a period--> not active
 *	                ^                  |
 *	                +------ wakes up --+
 *
 * Included after the knobs and groups.h. Read next: policies/credit.bpf.c.
 */
#define GAIN_SHIFT 10		/* `gain` is in 1/1024 ns per credit */
#define DEBT_PERIODS 64		/* no task owes more */
#define NR_BUCKETS 64		/* a power of two */
/* No debt takes longer to work off: Linux ends a policy when a task waits for 30 s. */
#define REPAY_NS 10000000000ULL

/*
 * All times that may be owed are signed. What waits is settled by the accounting, too; its own CPU
 * may have taken it by then.
 */
struct task_ctx {
	struct bpf_spin_lock lock;
	s64 balance_ns; /* CPU time its credits still buy */
	s64 cap_ns;	/* CPU time its cap still allows */
	u64 exec_ns;	/* its CPU time when it was last charged */
	u64 period;	/* up to which it was given its due */
	u64 gain;	/* same; see the global */
	u64 credits;
	u64 cap_percent; /* 0: none */
	u64 weight;	 /* its part of active_credits */
	u64 limit_ns;	 /* its part of limited_ns; not 0: it is limited */
	u64 joined;	 /* period in which it began to share */
	u64 leaves;	 /* period up to which it shares, if it lingers */
	struct group_task group;
	u32 class;
	u32 waits_in;	/* class in whose nr_queued it is counted; NR_CLASSES: none */
	bool is_active; /* shares in what is given out */
	bool lingers;	/* is active although it sleeps */
	bool is_known;	/* has been runnable before */
};

#include <scx/policy/credit.h>

/* Written by the accounting only: */
static u64 gain;	      /* sum of what one credit was ever given */
static u64 rate;	      /* by how much `gain` grew last */
static u64 gains[NR_BUCKETS]; /* `gain` after the last periods */
/* Atomic: */
static u64 nr_runnable;	   /* tasks */
static u64 active_credits; /* of active tasks that are not limited */
static u64 limited_ns;	   /* per period, of those that are */
static u64 forfeited_ns;   /* given to tasks that had hoarded enough */
/*
 * What leaves active_credits and limited_ns after each of the next periods. If a
 * task wakes up while its bucket is emptied, it may leave twice; the bucket then
 * holds the opposite, which is corrected when it is emptied next.
 */
static struct bucket {
	u64 credits;
	u64 limit_ns;
} buckets[NR_BUCKETS];

/* In its group. */
static u64 own_credits(struct task_struct *p)
{
	u64 credits = credits_of(p, task_attr(p));

	return credits ? credits : 1;
}

/* In percent of a CPU; 0: it has none. */
static u64 own_cap(struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);

	return task_attr_given(attr, TASK_ATTR_CAP) && attr->cap_percent < 100 ? attr->cap_percent :
										 0;
}

/* CPU time per period that the task may have at most. */
static u64 limit_ns_of(const struct task_ctx *tc)
{
	return tc->cap_percent ? period_ns * tc->cap_percent / 100 : period_ns;
}

/* What an active task is due for the periods up to @until; @gain_then is that of @now. */
static u64 due_ns_until(const struct task_ctx *tc, u64 until, u64 now, u64 gain_then)
{
	if (tc->limit_ns)
		return tc->limit_ns * (until - tc->period);
	if (now - until >= NR_BUCKETS) /* so long ago: as was planned */
		return tc->balance_ns < (s64)period_ns ? (u64)((s64)period_ns - tc->balance_ns) : 0;
	if (now != until)
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

	if (repaid_ns && repaid_ns < max_ns)
		max_ns = repaid_ns;
	if (tc->balance_ns < -(s64)max_ns)
		tc->balance_ns = -(s64)max_ns;
}

/* Give the task what it is due since it was last looked at. Context: its account is locked. */
static void settle(struct task_ctx *tc)
{
	u64 now = READ_ONCE(period), gain_now = READ_ONCE(gain);
	s64 max_ns = (s64)(period_ns * HOARD_PERIODS);
	u64 limit_ns = limit_ns_of(tc);
	bool has_left = tc->lingers && tc->leaves <= now;

	if (now == tc->period)
		return;
	if (tc->is_active)
		tc->balance_ns += (s64)due_ns_until(tc, has_left ? tc->leaves : now, now, gain_now);
	if (has_left) {
		/* The accounting took its part away meanwhile. */
		tc->is_active = false;
		tc->lingers = false;
		tc->weight = 0;
		tc->limit_ns = 0;
	}
	if (tc->balance_ns > max_ns) {
		__sync_fetch_and_add(&forfeited_ns, (u64)(tc->balance_ns - max_ns));
		tc->balance_ns = max_ns;
	}
	tc->cap_ns = add_up(tc->cap_ns, now - tc->period, limit_ns, (s64)(limit_ns * HOARD_PERIODS));
	tc->gain = gain_now;
	tc->period = now;
	limit_debt(tc);
}

/* Take what the task has used since it was last looked at. */
static void charge(struct task_struct *p, struct task_ctx *tc)
{
	s64 used_ns = (s64)exec_ns_since(p, &tc->exec_ns);

	quota_charge(p, &tc->group);
	bpf_spin_lock(&tc->lock);
	settle(tc);
	tc->balance_ns -= used_ns;
	tc->cap_ns -= used_ns;
	limit_debt(tc);
	bpf_spin_unlock(&tc->lock);
}

static u32 class_of(const struct task_ctx *tc)
{
	if (is_throttled(tc->group.nr))
		return CLASS_PARKED;
	if (tc->cap_percent && tc->cap_ns <= 0)
		return CLASS_PARKED;
	return tc->balance_ns >= 0 ? CLASS_UNDER : CLASS_OVER;
}

/* ---- which tasks share, and which are limited ---------------------------- */

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
	u64 credits = groups == GROUPS_NONE ? tc->credits :
					      group_part(&tc->group, tc->group.weight);
	bool exceeds;

	if (!tc->is_active || tc->joined == period)
		return;
	exceeds = (credits * rate >> GAIN_SHIFT) > limit_ns_of(tc);
	if (exceeds == !!tc->limit_ns && credits == tc->credits)
		return;
	tc->credits = credits;
	leave_shares(tc);
	join_shares(tc, exceeds);
}

static u32 class_now(struct task_ctx *tc)
{
	bpf_spin_lock(&tc->lock);
	settle(tc);
	review_shares(tc);
	bpf_spin_unlock(&tc->lock);
	return class_of(tc);
}

/*
 * A task that sleeps shares until it is in credit by one period, or one
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

/* @p becomes runnable. Its attributes may have changed. */
static void join(struct task_struct *p, struct task_ctx *tc)
{
	u64 credits = own_credits(p), cap_percent = own_cap(p);

	if (groups != GROUPS_NONE)
		credits = group_part(&tc->group, credits);
	__sync_fetch_and_add(&nr_runnable, 1);
	bpf_spin_lock(&tc->lock);
	settle(tc);
	if (tc->lingers)
		stop_lingering(tc);
	if (tc->is_active && (credits != tc->credits || cap_percent != tc->cap_percent)) {
		leave_shares(tc);
		tc->is_active = false;
	}
	tc->credits = credits;
	tc->cap_percent = cap_percent;
	if (!tc->is_known) {
		tc->is_known = true;
		tc->cap_ns = (s64)limit_ns_of(tc);
	}
	if (!tc->is_active) {
		tc->is_active = true;
		tc->joined = period;
		join_shares(tc, false);
	}
	bpf_spin_unlock(&tc->lock);
}

/* It blocks, or is to be changed. */
static void leave(struct task_ctx *tc)
{
	__sync_fetch_and_sub(&nr_runnable, 1);
	bpf_spin_lock(&tc->lock);
	settle(tc);
	if (tc->is_active)
		linger(tc);
	bpf_spin_unlock(&tc->lock);
}

/* It ends. What it hoarded or owes goes with it, or the others would never get it. */
static void close_account(struct task_ctx *tc)
{
	bpf_spin_lock(&tc->lock);
	settle(tc);
	if (tc->lingers)
		stop_lingering(tc);
	if (tc->is_active)
		leave_shares(tc);
	tc->is_active = false;
	if (tc->balance_ns > 0)
		__sync_fetch_and_add(&forfeited_ns, (u64)tc->balance_ns);
	bpf_spin_unlock(&tc->lock);
}

/* ---- the accounting, once per period ------------------------------------- */

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

static void begin_period(void)
{
	give_out();
	gains[(period + 1) % NR_BUCKETS] = gain;
	period++;
	empty_bucket(&buckets[period % NR_BUCKETS]);
}
