/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * eevdf_lag.h - what a task asks for: its lag behind V, the mean of all virtual times
 * in its queue, its slice, and its deadline.
 *
 * Included after the knobs slice_ns, slice_source and groups.
 * Read next: policies/eevdf.bpf.c, which chooses by them.
 */
#include <scx/policy/eevdf_mean.h>
#include <scx/task_attr.h>
#include <scx/task_ctx.h>

#define SLICE_MIN_NS 100000ULL
#define SLICE_MAX_NS 100000000ULL
#define DEFAULT_PRIORITY 5
#define NR_DELAYED_MAX 64	/* more that sleep and owe are not counted meanwhile */

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
	u32 state;	 /* enum group_state: whether it counts in V; eevdf_lock protects it */
};
DEFINE_TASK_CTX(struct task_ctx);

/*
 * Tasks that sleep and owe. They count in V until one of them would be chosen, which is
 * when it is taken off ("delayed dequeue" in Linux), or wakes up.
 * Not with groups=tree. eevdf_lock protects these.
 */
static struct delayed {
	u64 v;
	u64 deadline;
	u64 weight;
	s32 pid;
} delayed[NR_DELAYED_MAX];
static u32 nr_delayed; /* slots in use, the first ones */

/* But for groups=flat in whole weights; its lag is in virtual time, so that the unit is the same for all. */
static u64 weight_of(const struct task_struct *p, const struct task_ctx *tc)
{
	return groups == GROUPS_FLAT ? group_part(&tc->group, p->scx.weight) : p->scx.weight;
}

static u32 queue_of(const struct task_ctx *tc)
{
	return groups == GROUPS_TREE ? tc->group.in : EEVDF_DSQ;
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

/* Context: eevdf_lock is held, slot @i is in use. */
static __always_inline void free_delayed(u32 i)
{
	struct delayed *last;

	nr_delayed--;
	last = ARRAY_ELEM_PTR(delayed, nr_delayed, NR_DELAYED_MAX);
	if (last && i < NR_DELAYED_MAX)
		delayed[i] = *last;
}

/* V goes by the clock while a task runs, and its v by its CPU time: a little less. */
static bool is_eligible_at(u64 v, u64 weight, u64 mean)
{
	return time_before_eq(v, mean + vtime_of(LAG_SLACK_NS, weight));
}

static bool is_eligible(const struct task_ctx *tc, u64 mean)
{
	return is_eligible_at(tc->v, tc->weight, mean);
}

/* The most lag that is kept, in virtual time. */
static u64 lag_max(const struct task_ctx *tc)
{
	return lag_of_slices(tc->slice_ns, tc->weight);
}

/* Ask for the next slice; a new task's first is half of one, to come in sooner. */
static void make_request(struct task_struct *p, struct task_ctx *tc)
{
	tc->slice_ns = own_slice_ns(p);
	tc->deadline = tc->v + vtime_of(tc->is_new ? tc->slice_ns / 2 : tc->slice_ns, tc->weight);
}

/* Its part is another one now: it keeps what it owes, or is owed, and the rest of its slice, in CPU time. */
static void reweigh(struct mean *m, struct task_ctx *tc, u64 weight)
{
	u64 before = tc->weight;
	s64 left;

	if (weight == before)
		return;
	left = divide_signed((s64)(tc->deadline - tc->v) * (s64)before, weight);
	bpf_spin_lock(&eevdf_lock);
	recount(m, &tc->v, before, weight);
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
	struct mean *m = mean_for(queue_of(tc));
	u64 now_ns = scx_bpf_now();
	u64 used_ns = exec_ns_since(p, &tc->exec_ns);
	u64 used = vtime_of(used_ns, tc->weight);
	u64 max = tc->has_yielded ? 0 : lag_max(tc);
	bool has_rest = scx_bpf_nr_cpu_ids() > 1;

	if (!m)
		return;
	bpf_spin_lock(&eevdf_lock);
	m->since_ns += now_ns - tc->charged_ns;
	/* It cannot use more than a CPU, or does not want to: see the head. */
	if (tc->state == GROUP_COUNTED)
		use(m, &tc->v, tc->weight, used, now_ns, tc->has_yielded || has_rest, max);
	if (groups == GROUPS_TREE)
		groups_charge(tc->group.in, used_ns, now_ns - tc->charged_ns, now_ns, has_rest);
	bpf_spin_unlock(&eevdf_lock);
	quota_charge(p, &tc->group);
	tc->charged_ns = now_ns;
	/* Not while others of its group are set aside, of whose part it would get all. */
	if (groups == GROUPS_FLAT && !is_throttled(tc->group.in))
		reweigh(m, tc, weight_of(p, tc));
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
	struct mean *m = &means[0];
	u32 before = nr_delayed;
	u64 mean, weight = 0;
	s64 sum = 0;
	u32 i;

	if (!before)
		return 0;
	bpf_spin_lock(&eevdf_lock);
	mean = mean_at(m, now_ns);
	/* From the last on, since the last one moves into a slot that is freed. */
	for (i = NR_DELAYED_MAX; i-- > 0;) {
		const struct delayed *d = &delayed[i];

		if (i >= nr_delayed || (which != FORGIVE_ALL && time_before(mean, d->v)) ||
		    (which == FORGIVE_EARLIER && !time_before(d->deadline, deadline)))
			continue;
		weight += d->weight;
		sum += (s64)(d->v - m->base) * (s64)d->weight;
		free_delayed(i);
	}
	discount(m, sum, weight, mean);
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
		mean = mean_before(&means[0], now_ns);
		owes = time_before(mean, tc->v);
		if (owes && may_stay)
			break;
		if (owes)
			tc->lag = (s64)(mean - tc->v);
		uncount(&means[0], tc->v, tc->weight, mean);
		break;
	}
	bpf_spin_unlock(&eevdf_lock);
	return owes && may_stay;
}

/* It counts where it is. Context: eevdf_lock is held. */
static __always_inline void set_counted(struct mean *m, struct task_ctx *tc, u64 now_ns)
{
	bool was_aside = tc->state == GROUP_ASIDE;

	tc->charged_ns = now_ns;
	tc->state = GROUP_COUNTED;
	count(m, tc->v, tc->weight);
	if (groups == GROUPS_TREE)
		groups_join(tc->group.in, now_ns, was_aside);
}

/*
 * Put a task that was not runnable where its lag is what it was; V moves as it comes,
 * by its part of all weight. If it owes what it owed when it went to sleep, it stays
 * where it was, with the deadline that it had. Context: eevdf_lock is held. Return: whether it owes still.
 */
static __always_inline bool place(struct mean *m, struct task_ctx *tc, u64 weight, u64 now_ns,
				  bool was_delayed)
{
	bool still_owes = false;
	s64 lag = tc->lag;
	u64 v;

	if (weight != tc->weight)
		lag = divide_signed(lag * (s64)tc->weight, weight);
	v = was_delayed ? mean_before(m, now_ns) : mean_at(m, now_ns);
	m->updated_ns = now_ns;
	if (lag < 0 && weight == tc->weight) {
		lag = time_before(tc->v, v) ? 0 : (s64)(v - tc->v);
		still_owes = lag < 0;
	} else if (m->weight) {
		lag += divide_signed(lag * (s64)weight, m->weight);
	}
	tc->v = v - (u64)lag;
	tc->weight = weight;
	set_counted(m, tc, now_ns);
	return still_owes;
}

static void join(struct task_struct *p, struct task_ctx *tc)
{
	struct mean *m = mean_for(queue_of(tc));
	u64 weight = weight_of(p, tc);
	u64 now_ns = scx_bpf_now();
	bool still_owes, was_delayed = tc->is_delayed;

	if (!m)
		return;
	if (was_delayed && end_delay(p, tc, weight == tc->weight)) {
		tc->state = GROUP_COUNTED;
		tc->charged_ns = m->updated_ns = now_ns;
		return;
	}
	bpf_spin_lock(&eevdf_lock);
	still_owes = place(m, tc, weight, now_ns, was_delayed);
	bpf_spin_unlock(&eevdf_lock);
	if (!still_owes)
		make_request(p, tc);
}

/* It is not runnable any more: its lag is kept. Context: eevdf_lock is held, the task is charged. */
static __always_inline void displace(struct mean *m, struct task_ctx *tc, u64 v, u64 now_ns,
				     u32 state)
{
	s64 max = (s64)lag_max(tc);

	tc->state = state;
	uncount(m, tc->v, tc->weight, v);
	if (groups == GROUPS_TREE)
		groups_leave(tc->group.in, now_ns, state == GROUP_ASIDE);
	tc->lag = (s64)(v - tc->v);
	if (tc->lag > max)
		tc->lag = max;
	if (tc->lag >= -max)
		return;
	tc->lag = -max;
	tc->deadline -= tc->v - (v + (u64)max);
	tc->v = v + (u64)max;
}

/* Context: the task is charged. */
static void leave(struct task_struct *p, struct task_ctx *tc, bool is_asleep)
{
	struct mean *m = mean_for(queue_of(tc));
	u64 now_ns = scx_bpf_now();
	bool is_counted;
	u64 v;

	if (!m)
		return;
	bpf_spin_lock(&eevdf_lock);
	v = mean_at(m, now_ns);
	m->updated_ns = now_ns;
	is_counted = tc->state == GROUP_COUNTED;
	tc->is_delayed = is_counted && is_asleep && groups != GROUPS_TREE &&
			 time_before(v, tc->v) && delay(p, tc);
	if (is_counted && !tc->is_delayed)
		displace(m, tc, v, now_ns, GROUP_OUT);
	tc->state = GROUP_OUT;
	bpf_spin_unlock(&eevdf_lock);
}

/* ---- a task without budget ------------------------------------------------------ */

/* Its lag is kept, and what is left of its slice. */
static void count_out(struct task_struct *p, struct task_ctx *tc)
{
	struct mean *m = mean_for(queue_of(tc));
	/* Others of its queue are aside already: what ran since was this task, or another that follows. */
	bool follows = groups == GROUPS_TREE &&
		       scx_bpf_dsq_nr_queued(GROUPS_MAX + tc->group.in) > 0;
	u64 now_ns = scx_bpf_now();

	if (!m)
		return;
	group_uncount(&tc->group, GROUP_ASIDE);
	bpf_spin_lock(&eevdf_lock);
	if (tc->state == GROUP_COUNTED)
		displace(m, tc, follows ? m->aside_v : mean_of_aside(m, now_ns), now_ns,
			 GROUP_ASIDE);
	bpf_spin_unlock(&eevdf_lock);
}

static u64 count_in_again(struct task_struct *p, struct task_ctx *tc)
{
	struct mean *m = mean_for(queue_of(tc));
	u64 now_ns = scx_bpf_now();
	u64 weight;
	s64 left;

	group_recount(&tc->group);
	weight = weight_of(p, tc);
	if (!m)
		return tc->deadline;
	bpf_spin_lock(&eevdf_lock);
	if (tc->state == GROUP_ASIDE) {
		left = (s64)(tc->deadline - tc->v);
		if (weight != tc->weight) {
			left = divide_signed(left * (s64)tc->weight, weight);
			tc->lag = divide_signed(tc->lag * (s64)tc->weight, weight);
		}
		tc->v = mean_of_aside(m, now_ns) - (u64)tc->lag;
		tc->deadline = tc->v + (u64)left;
		tc->weight = weight;
		set_counted(m, tc, now_ns);
	}
	bpf_spin_unlock(&eevdf_lock);
	return tc->deadline;
}
