/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * group_quota.h - a cgroup's quota: CPU time that it may use in each period.
 *
 * Linux gives a sched_ext policy the numbers and limits nothing itself. Here a group with a
 * quota has a budget, as with Linux' CFS bandwidth control. What its tasks run, and those of
 * the groups below it, on all CPUs, is taken from it; a timer adds a quota per period. What is
 * left is kept up to the burst.
 *
 *	            what its tasks run
 *	  budget  ---------------------->  0 or less: throttled,   left := min(left + quota,
 *	    ^                              none of them runs               quota + burst)
 *	    +--------- next period -------------+
 *
 * Of groups in groups each has to have a budget: the tightest counts.
 *
 * What runs is charged at each tick, and stopped at the tick that finds the budget used up: a group
 * may exceed it by one tick on each CPU. That is owed, and paid from the next budget, so that the
 * mean over many periods is exact. A task is stopped wherever it is, in the kernel with a lock held, too;
 * Linux' fair class waits until it leaves the kernel.
 *
 * Included by groups.h. The policy calls quota_begin() and quota_charge(), asks is_throttled() before it
 * lets a task run, and defines put_back_tasks().
 * Read next: group_aside.h, where the tasks of a throttled group wait.
 */
#ifndef SCX_POLICY_GROUP_QUOTA_H
#define SCX_POLICY_GROUP_QUOTA_H

#define NO_QUOTA_US (~0ULL)

struct quota_timer {
	struct bpf_timer timer;
	u64 next_ns;	 /* begin of the next period */
	u32 must_resume; /* a new quota has ended the throttling */
};

/* Of the group with that number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GROUPS_MAX);
	__type(key, u32);
	__type(value, struct quota_timer);
} quota_timers SEC(".maps");

/* A throttled task waits where CPUs look: dispatch sets those aside. Set by any CPU. */
static u32 must_set_aside;

/* Groups have a budget again: what waits for one goes back to its queue. */
static void put_back_tasks(void);

/* Whether group @nr, or one that it is in, has used up its budget. */
static inline bool is_throttled(u32 nr)
{
	return groups != GROUPS_NONE && path_of(nr) & spent_groups;
}

/* The same, after all that CPUs did before they changed a budget. */
static inline bool is_throttled_now(u32 nr)
{
	u64 path = path_of(nr);
	bool is;

	bpf_spin_lock(&groups_lock);
	is = path & spent_groups;
	bpf_spin_unlock(&groups_lock);
	return is;
}

/* For ops.running. */
static inline void quota_begin(const struct task_struct *p, struct group_task *t)
{
	t->exec_ns = p->se.sum_exec_runtime;
}

/* Charge the CPU time since the last call. For ops.tick, ops.stopping, and ops.dispatch with @p as prev. */
static inline void quota_charge(const struct task_struct *p, struct group_task *t)
{
	u32 nr = t->in;
	u64 used_ns;
	u32 i;

	if (groups == GROUPS_NONE)
		return;
	used_ns = exec_ns_since(p, &t->exec_ns);
	if (!(path_of(nr) & limited_groups))
		return;
	bpf_spin_lock(&groups_lock);
	for (i = 0; nr && i < GROUP_LEVELS_MAX; i++) {
		struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);
		u64 bit = 1ULL << (nr % GROUPS_MAX);

		if (!g)
			break;
		if (limited_groups & bit) {
			g->left_ns -= (s64)used_ns;
			if (g->left_ns <= 0) {
				spent_groups |= bit;
				must_set_aside = 1;
			}
		}
		nr = g->parent;
	}
	bpf_spin_unlock(&groups_lock);
}

/* For ops.tick. */
static inline void quota_tick(struct task_struct *p, struct group_task *t)
{
	quota_charge(p, t);
	if (is_throttled(t->in))
		scx_bpf_task_set_slice(p, 0);
}

/* Context: groups_lock is held. Return: whether it was throttled and is no more. */
static __always_inline bool refill(struct group *g, u64 bit)
{
	s64 most_ns = (s64)(g->quota_ns + g->burst_ns);
	bool was_spent = spent_groups & bit;

	g->left_ns += (s64)g->quota_ns;
	if (g->left_ns > most_ns)
		g->left_ns = most_ns;
	if (g->left_ns > 0)
		spent_groups &= ~bit;
	return was_spent && g->left_ns > 0;
}

/* Tasks of a group may run that could not; a CPU that is idle for want of others looks for them. */
static inline void quota_resume(void)
{
	s32 nr_cpus = (s32)scx_bpf_nr_cpu_ids();
	s32 cpu;

	put_back_tasks();
	bpf_for(cpu, 0, nr_cpus)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

static inline void start_quota_timer(struct quota_timer *t, u64 at_ns)
{
	long err = bpf_timer_start(&t->timer, at_ns, BPF_F_TIMER_ABS);

	if (err)
		scx_bpf_error("no timer for a quota: %ld", err);
}

/* No operation that hears of a quota may move tasks: the timer is set to now for that. */
static int on_refill(void *map, u32 *nr, struct quota_timer *t)
{
	struct group *g = ARRAY_ELEM_PTR(groups_of, *nr, GROUPS_MAX);
	u64 bit = 1ULL << (*nr % GROUPS_MAX);
	bool resumes = __sync_lock_test_and_set(&t->must_resume, 0);
	u64 now_ns = bpf_ktime_get_ns();
	bool is_due = !time_before(now_ns, t->next_ns);
	bool has_quota;
	u64 period_ns;

	if (!g)
		return 0;
	bpf_spin_lock(&groups_lock);
	has_quota = limited_groups & bit;
	if (has_quota && is_due && refill(g, bit))
		resumes = true;
	period_ns = g->period_ns;
	bpf_spin_unlock(&groups_lock);
	if (resumes)
		quota_resume();
	if (!has_quota)
		return 0;
	/* What a late timer missed is not given, as by Linux. */
	if (is_due)
		t->next_ns += period_ns;
	if (!time_before(now_ns, t->next_ns))
		t->next_ns = now_ns + period_ns;
	start_quota_timer(t, t->next_ns);
	return 0;
}

/*
 * For ops.cgroup_set_bandwidth, and ops.cgroup_init. As by Linux a new quota is given at once, to what is
 * left or owed, and its periods begin now.
 */
static void quota_set(struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us)
{
	u32 nr = group_number(cgrp);
	struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);
	u64 bit = 1ULL << (nr % GROUPS_MAX);
	u64 now_ns = bpf_ktime_get_ns();
	struct quota_timer *t;
	bool resumes;

	if (groups == GROUPS_NONE || !nr || !g || !has_group(cgrp, nr))
		return;
	t = bpf_map_lookup_elem(&quota_timers, &nr);
	if (!t)
		return;
	bpf_spin_lock(&groups_lock);
	if (quota_us == NO_QUOTA_US) {
		resumes = spent_groups & bit;
		limited_groups &= ~bit;
		spent_groups &= ~bit;
		g->left_ns = 0;
	} else {
		g->period_ns = period_us * 1000;
		g->quota_ns = quota_us * 1000;
		g->burst_ns = burst_us * 1000;
		limited_groups |= bit;
		resumes = refill(g, bit);
	}
	bpf_spin_unlock(&groups_lock);
	t->next_ns = now_ns + period_us * 1000;
	if (resumes)
		t->must_resume = 1;
	start_quota_timer(t, resumes ? now_ns : t->next_ns);
}

/* For ops.cgroup_init, after group_init(). */
static s32 quota_init(struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	u32 nr = group_number(cgrp);
	struct quota_timer *t;

	if (groups == GROUPS_NONE || !nr || !has_group(cgrp, nr))
		return 0;
	t = bpf_map_lookup_elem(&quota_timers, &nr);
	if (!t)
		return -ENOENT;
	/* It is initialised already if another cgroup had this number. */
	bpf_timer_init(&t->timer, &quota_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&t->timer, on_refill);
	if (args->bw_quota_us != NO_QUOTA_US)
		quota_set(cgrp, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
	return 0;
}

#endif
