/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * eevdf_lag.h - V, the mean of all virtual times, and what a task asks for: its lag
 * behind V, its slice, and its deadline.
 *
 * Included after the knobs slice_ns, slice_source and groups.
 * Read next: policies/eevdf.bpf.c, which chooses by them.
 */
#include <scx/divide.h>
#include <scx/policy/groups.h>
#include <scx/task_attr.h>
#include <scx/task_ctx.h>

#define VTIME_PER_NS (100ULL << 10)	/* at a weight of 1; 1024 at nice 0 */
#define SLICE_MIN_NS 100000ULL
#define SLICE_MAX_NS 100000000ULL
#define SLICE_SLACK_NS 1000ULL		/* a slice that has no more left is used up */
#define LAG_SLACK_NS 3000ULL		/* a task ahead of V by no more is eligible */
#define DEFAULT_PRIORITY 5
#define LAG_SLICES 2
#define UPDATE_AGE_MAX_NS 2000000ULL	/* of Linux's last accounts: half a tick, as a mean */
#define NR_DELAYED_MAX 64	/* more that sleep and owe are not counted meanwhile */
/* On several CPUs; below one tick, ordinary waiting would be forgone. */
#define LAG_MIN_NS 20000000ULL

struct task_ctx {
	u64 v;		/* virtual time; wraps */
	u64 deadline;	/* virtual time */
	s64 lag;	/* virtual time; while it is not runnable */
	u64 weight;	/* with which it is, or was last, counted */
	u64 slice_ns;	/* that it asks for */
	u64 exec_ns;	/* its CPU time when it was last charged ... */
	u64 charged_ns; /* ... and when that was, or when it became runnable */
	struct group_task group;
	bool has_yielded;
	bool is_new;	 /* has never run */
	bool is_delayed; /* sleeps and owes: see struct delayed */
};
DEFINE_TASK_CTX(struct task_ctx);

/*
 * V is mean_base + mean_sum / total_weight. Running tasks are ahead of what they were last charged:
 * by nr_running times now, less since_ns.
 */
private(EEVDF) struct bpf_spin_lock eevdf_lock;
/* eevdf_lock protects: */
static u64 mean_base;	 /* virtual time; close to V */
static s64 mean_sum;	 /* of weight * (v - base), over all runnable tasks */
static u64 total_weight; /* of all runnable tasks, the running ones included */
static u64 nr_running;
static u64 since_ns; /* sum of charged_ns of the running tasks; wraps */
/*
 * When a task last came, left or got a CPU: Linux does the accounts of the running task then and at ticks,
 * but not as one wakes up that sleeps and owes, which gets its place by those before.
 */
static u64 updated_ns;
/*
 * Tasks that sleep and owe. They count in V until one of them would be chosen, which is
 * when it is taken off ("delayed dequeue" in Linux), or wakes up.
 */
static struct delayed {
	u64 v;
	u64 deadline;
	u64 weight;
	s32 pid;
} delayed[NR_DELAYED_MAX];
static u32 nr_delayed; /* slots in use, the first ones */

/* Without groups in whole weights; its lag is in virtual time, so that the unit is the same for all. */
static u64 weight_of(const struct task_struct *p, const struct task_ctx *tc)
{
	return groups == GROUPS_NONE ? p->scx.weight : group_part(&tc->group, p->scx.weight);
}

static u64 vtime_of(u64 ns, u64 weight)
{
	return ns * VTIME_PER_NS / weight;
}

static u64 clamp_slice(u64 ns)
{
	if (ns < SLICE_MIN_NS)
		return SLICE_MIN_NS;
	return ns < SLICE_MAX_NS ? ns : SLICE_MAX_NS;
}

/* The slice that @p asks for. */
static u64 own_slice_ns(struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);
	s32 priority;

	if (slice_source == SLICE_BURST && task_attr_given(attr, TASK_ATTR_BURST) && attr->burst_ns)
		return clamp_slice(attr->burst_ns);
	if (slice_source != SLICE_PRIORITY || !task_attr_given(attr, TASK_ATTR_PRIORITY))
		return slice_ns;
	priority = attr->priority;
	if (priority < DEFAULT_PRIORITY)
		return clamp_slice(slice_ns >>
				   (priority < 0 ? DEFAULT_PRIORITY : DEFAULT_PRIORITY - priority));
	if (priority > 2 * DEFAULT_PRIORITY)
		priority = 2 * DEFAULT_PRIORITY;
	return clamp_slice(slice_ns << ((priority - DEFAULT_PRIORITY) & 7));
}

/* What it may still run of its slice, in CPU time; at least a little. */
static u64 slice_left_ns(const struct task_ctx *tc)
{
	u64 left = tc->deadline - tc->v;

	if ((s64)left <= 0)
		return 1;
	return (left * tc->weight + VTIME_PER_NS - 1) / VTIME_PER_NS;
}

/* ---- V ---------------------------------------------------------------------- */

/* Context: eevdf_lock is held. */
static __always_inline u64 mean_at(u64 now_ns)
{
	s64 ahead_ns = (s64)(nr_running * now_ns - since_ns);
	s64 sum = mean_sum;

	if (!total_weight)
		return mean_base;
	/* CPUs' clocks may differ by a little. */
	if (ahead_ns > 0)
		sum += ahead_ns * (s64)VTIME_PER_NS;
	return mean_base + (u64)divide_signed(sum, total_weight);
}

/* V as Linux had it at its last accounts. Context: eevdf_lock is held. */
static __always_inline u64 mean_before(u64 now_ns)
{
	u64 oldest_ns = now_ns - UPDATE_AGE_MAX_NS;

	return mean_at(time_before(updated_ns, oldest_ns) ? oldest_ns : updated_ns);
}

/* A task of @weight at @v does not count any more. Context: eevdf_lock is held. */
static __always_inline void uncount(u64 v, u64 weight, u64 mean)
{
	total_weight -= weight;
	mean_sum -= (s64)(v - mean_base) * (s64)weight;
	if (total_weight)
		return;
	mean_base = mean;
	mean_sum = 0;
}

/* Context: eevdf_lock is held, slot @i is in use. */
static __always_inline void free_delayed(u32 i)
{
	struct delayed *last;

	nr_delayed--;
	last = ARRAY_ELEM_PTR(delayed, nr_delayed, NR_DELAYED_MAX);
	if (last && i < NR_DELAYED_MAX)
		delayed[i] = *last;
}

static u64 mean_of(u64 now_ns)
{
	u64 v;

	bpf_spin_lock(&eevdf_lock);
	v = mean_at(now_ns);
	bpf_spin_unlock(&eevdf_lock);
	return v;
}

/* V goes by the clock while a task runs, and its v by its CPU time: a little less. */
static bool is_eligible(const struct task_ctx *tc, u64 mean)
{
	return time_before_eq(tc->v, mean + vtime_of(LAG_SLACK_NS, tc->weight));
}

/* The most lag that is kept, in virtual time. */
static u64 lag_max(const struct task_ctx *tc)
{
	u64 ns = LAG_SLICES * tc->slice_ns;

	return vtime_of(ns > LAG_MIN_NS ? ns : LAG_MIN_NS, tc->weight);
}

/* Ask for the next slice; a new task's first is half of one, to come in sooner. */
static void make_request(struct task_struct *p, struct task_ctx *tc)
{
	tc->slice_ns = own_slice_ns(p);
	tc->deadline = tc->v + vtime_of(tc->is_new ? tc->slice_ns / 2 : tc->slice_ns, tc->weight);
}

/* Its part is another one now: it keeps what it owes, or is owed, and the rest of its slice, in CPU time. */
static void reweigh(struct task_ctx *tc, u64 weight)
{
	u64 before = tc->weight;
	s64 lag, left;

	if (weight == before)
		return;
	left = divide_signed((s64)(tc->deadline - tc->v) * (s64)before, weight);
	bpf_spin_lock(&eevdf_lock);
	mean_sum -= (s64)(tc->v - mean_base) * (s64)before;
	total_weight += weight - before;
	lag = divide_signed((s64)(mean_base - tc->v) * (s64)before, weight);
	tc->v = mean_base - (u64)lag;
	mean_sum += (s64)(tc->v - mean_base) * (s64)weight;
	tc->weight = weight;
	bpf_spin_unlock(&eevdf_lock);
	tc->deadline = tc->v + (u64)left;
}

/*
 * Charge the CPU time since the last call; if the slice is used up, ask for the next
 * one. Context: @p is running.
 */
static void charge(struct task_struct *p, struct task_ctx *tc)
{
	u64 now_ns = scx_bpf_now();
	u64 used = vtime_of(exec_ns_since(p, &tc->exec_ns), tc->weight);
	u64 max = tc->has_yielded ? 0 : lag_max(tc);
	bool forgoes = tc->has_yielded || scx_bpf_nr_cpu_ids() > 1;
	u64 lag;
	s64 shift;

	bpf_spin_lock(&eevdf_lock);
	since_ns += now_ns - tc->charged_ns;
	/* It cannot use more than a CPU, or does not want to: see the head. */
	lag = mean_at(now_ns) - (tc->v + used);
	if (forgoes && (s64)lag > (s64)max)
		used += lag - max;
	tc->v += used;
	mean_sum += (s64)(used * tc->weight);
	/* Keep the sum small, so that products stay in range. */
	shift = total_weight ? divide_signed(mean_sum, total_weight) : 0;
	mean_base += (u64)shift;
	mean_sum -= shift * (s64)total_weight;
	bpf_spin_unlock(&eevdf_lock);
	tc->charged_ns = now_ns;
	if (groups != GROUPS_NONE)
		reweigh(tc, weight_of(p, tc));
	if (time_before_eq(tc->deadline, tc->v + vtime_of(SLICE_SLACK_NS, tc->weight)))
		make_request(p, tc);
}

enum { FORGIVE_EARLIER, FORGIVE_ELIGIBLE, FORGIVE_ALL };

/*
 * Take off the delayed tasks that are eligible and come before @deadline, or at any
 * deadline, or all: their debt is forgiven. Return: how many, each of which moves V.
 * Not static, as eevdf_is_delayed_first(): the kernel's verifier reads it once for all callers.
 */
__noinline u32 eevdf_forgive(u64 now_ns, u32 which, u64 deadline)
{
	u32 before = nr_delayed;
	u64 mean;
	u32 i;

	if (!before)
		return 0;
	bpf_spin_lock(&eevdf_lock);
	mean = mean_at(now_ns);
	/* From the last on, since the last one moves into a slot that is freed. */
	for (i = NR_DELAYED_MAX; i-- > 0;) {
		const struct delayed *d = &delayed[i];

		if (i >= nr_delayed || (which != FORGIVE_ALL && time_before(mean, d->v)) ||
		    (which == FORGIVE_EARLIER && !time_before(d->deadline, deadline)))
			continue;
		uncount(d->v, d->weight, mean);
		free_delayed(i);
	}
	bpf_spin_unlock(&eevdf_lock);
	return before - nr_delayed;
}

/* Whether a delayed task would be chosen before @deadline; 1 or 0. */
__noinline u32 eevdf_is_delayed_first(u64 mean, u64 deadline)
{
	u32 i;

	for (i = 0; i < NR_DELAYED_MAX && i < nr_delayed; i++) {
		if (time_before_eq(delayed[i].v, mean) && time_before(delayed[i].deadline, deadline))
			return 1;
	}
	return 0;
}

/* Context: eevdf_lock is held. Return: whether there was room. */
static __always_inline bool delay(struct task_struct *p, const struct task_ctx *tc)
{
	struct delayed *d = ARRAY_ELEM_PTR(delayed, nr_delayed, NR_DELAYED_MAX);

	if (!d)
		return false;
	*d = (struct delayed){ tc->v, tc->deadline, tc->weight, p->pid };
	nr_delayed++;
	return true;
}

/*
 * A delayed task wakes up, or is no more. Return: whether it owes still, and then stays
 * counted if it @may_stay; else its lag is what is left of it.
 */
static bool end_delay(struct task_struct *p, struct task_ctx *tc, bool may_stay)
{
	u64 now_ns = scx_bpf_now();
	bool owes = false;
	u64 mean;
	u32 i;

	tc->is_delayed = false;
	tc->lag = 0;
	bpf_spin_lock(&eevdf_lock);
	for (i = 0; i < NR_DELAYED_MAX && i < nr_delayed; i++) {
		if (delayed[i].pid != p->pid)
			continue;
		free_delayed(i);
		mean = mean_before(now_ns);
		owes = time_before(mean, tc->v);
		if (owes && may_stay)
			break;
		if (owes)
			tc->lag = (s64)(mean - tc->v);
		uncount(tc->v, tc->weight, mean);
		break;
	}
	bpf_spin_unlock(&eevdf_lock);
	return owes && may_stay;
}

/*
 * Put a task that was not runnable where its lag is what it was; V moves as it comes,
 * by its part of all weight. If it owes what it owed when it went to sleep, it stays
 * where it was, with the deadline that it had.
 */
static void join(struct task_struct *p, struct task_ctx *tc)
{
	u64 weight = weight_of(p, tc);
	u64 now_ns = scx_bpf_now();
	bool still_owes = false, was_delayed = tc->is_delayed;
	s64 lag;
	u64 v;

	if (was_delayed && end_delay(p, tc, weight == tc->weight)) {
		tc->charged_ns = updated_ns = now_ns;
		return;
	}
	lag = tc->lag;
	if (weight != tc->weight)
		lag = divide_signed(lag * (s64)tc->weight, weight);
	bpf_spin_lock(&eevdf_lock);
	v = was_delayed ? mean_before(now_ns) : mean_at(now_ns);
	updated_ns = now_ns;
	if (lag < 0 && weight == tc->weight) {
		lag = time_before(tc->v, v) ? 0 : (s64)(v - tc->v);
		still_owes = lag < 0;
	} else if (total_weight) {
		lag += divide_signed(lag * (s64)weight, total_weight);
	}
	tc->v = v - (u64)lag;
	tc->charged_ns = now_ns;
	tc->weight = weight;
	total_weight += weight;
	mean_sum += (s64)(tc->v - mean_base) * (s64)weight;
	bpf_spin_unlock(&eevdf_lock);
	if (!still_owes)
		make_request(p, tc);
}

/* Context: the task is charged. */
static void leave(struct task_struct *p, struct task_ctx *tc, bool is_asleep)
{
	s64 max = (s64)lag_max(tc);
	u64 now_ns = scx_bpf_now();
	u64 v;

	bpf_spin_lock(&eevdf_lock);
	v = mean_at(now_ns);
	updated_ns = now_ns;
	tc->is_delayed = is_asleep && time_before(v, tc->v) && delay(p, tc);
	if (!tc->is_delayed)
		uncount(tc->v, tc->weight, v);
	bpf_spin_unlock(&eevdf_lock);
	if (tc->is_delayed)
		return;
	tc->lag = (s64)(v - tc->v);
	if (tc->lag > max)
		tc->lag = max;
	if (tc->lag >= -max)
		return;
	tc->lag = -max;
	tc->deadline -= tc->v - (v + (u64)max);
	tc->v = v + (u64)max;
}
