/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * eevdf_mean.h - V, the mean of all virtual times of a queue, and the groups in it.
 *
 * There is one queue, or with groups=tree one for each cgroup: a group then has a
 * virtual time, a lag and a deadline in its parent's, as a task has in its own. It counts
 * there while anything in it is runnable; what its tasks use is charged to it, and what
 * runs below it moves V of each queue above.
 *
 * Included after the knobs slice_ns and groups. Read next: scx/policy/eevdf_lag.h.
 */
#include <scx/divide.h>
#include <scx/policy/group_tree.h>

#define VTIME_PER_NS (100ULL << 10) /* at a weight of 1; 1024 at nice 0 */
#define UPDATE_AGE_MAX_NS 2000000ULL	/* of Linux's last accounts: half a tick, as a mean */
#define SLICE_SLACK_NS 1000ULL		/* a slice that has no more left is used up */
#define LAG_SLACK_NS 3000ULL		/* a task ahead of V by no more is eligible */
#define ASIDE_AT_ONCE_NS 1000000ULL	/* so long it takes at most for all of a group */
#define LAG_SLICES 2
/* On several CPUs; below one tick, ordinary waiting would be forgone. */
#define LAG_MIN_NS 20000000ULL

private(EEVDF) struct bpf_spin_lock eevdf_lock;
/*
 * V is base + sum / weight. What runs is ahead of what it was last charged: by nr_running
 * times now, less since_ns. eevdf_lock protects these, and what groups_of has for a tree.
 */
static struct mean {
	u64 base;	/* virtual time; close to V */
	s64 sum;	/* of weight * (v - base), over all that is runnable */
	u64 weight;	/* of all that is runnable, what runs included */
	u64 nr_running; /* tasks, also in groups below */
	u64 since_ns;	/* sum of charged_ns of the running tasks; wraps */
	/*
	 * When a task last came, left or got a CPU: Linux does the accounts of the running task then and
	 * at ticks, but not as one wakes up that sleeps and owes, which gets its place by those before.
	 */
	u64 updated_ns;
	/* V when tasks were last set aside, or put back: one after the other, and each would move it. */
	u64 aside_v;
	u64 aside_ns;
} means[GROUPS_MAX];

static u64 vtime_of(u64 ns, u64 weight)
{
	return ns * VTIME_PER_NS / weight;
}

/* Context: eevdf_lock is held. */
static __always_inline u64 mean_at(const struct mean *m, u64 now_ns)
{
	s64 ahead_ns = (s64)(m->nr_running * now_ns - m->since_ns);
	s64 sum = m->sum;

	if (!m->weight)
		return m->base;
	/* CPUs' clocks may differ by a little. */
	if (ahead_ns > 0)
		sum += ahead_ns * (s64)VTIME_PER_NS;
	return m->base + (u64)divide_signed(sum, m->weight);
}

/* V as Linux had it at its last accounts. Context: eevdf_lock is held. */
static __always_inline u64 mean_before(const struct mean *m, u64 now_ns)
{
	u64 oldest_ns = now_ns - UPDATE_AGE_MAX_NS;

	return mean_at(m, time_before(m->updated_ns, oldest_ns) ? oldest_ns : m->updated_ns);
}

/* V for tasks that are set aside or put back: the same for all, so that none gains on another. Context: as above. */
static __always_inline u64 mean_of_aside(struct mean *m, u64 now_ns)
{
	if (now_ns - m->aside_ns >= ASIDE_AT_ONCE_NS) {
		m->aside_v = mean_at(m, now_ns);
		m->aside_ns = now_ns;
	}
	return m->aside_v;
}

/* Of queue @nr; there may be only one. */
static __always_inline struct mean *mean_for(u32 nr)
{
	return groups == GROUPS_TREE ? ARRAY_ELEM_PTR(means, nr, GROUPS_MAX) : &means[0];
}

static u64 mean_of(u32 nr, u64 now_ns)
{
	struct mean *m = mean_for(nr);
	u64 v;

	if (!m)
		return 0;
	bpf_spin_lock(&eevdf_lock);
	v = mean_at(m, now_ns);
	bpf_spin_unlock(&eevdf_lock);
	return v;
}

/* What is at @v counts with @weight. Context: eevdf_lock is held. */
static __always_inline void count(struct mean *m, u64 v, u64 weight)
{
	m->weight += weight;
	m->sum += (s64)(v - m->base) * (s64)weight;
}

/* What has @weight and @sum does not count any more. Context: eevdf_lock is held. */
static __always_inline void discount(struct mean *m, s64 sum, u64 weight, u64 mean)
{
	m->weight -= weight;
	m->sum -= sum;
	if (m->weight)
		return;
	m->base = mean;
	m->sum = 0;
}

/* What has @weight at @v does not count any more. Context: eevdf_lock is held. */
static __always_inline void uncount(struct mean *m, u64 v, u64 weight, u64 mean)
{
	discount(m, (s64)(v - m->base) * (s64)weight, weight, mean);
}

/* What is at *@v has @weight now: it keeps what it owes, or is owed, in CPU time. Context: eevdf_lock is held. */
static __always_inline void recount(struct mean *m, u64 *v, u64 before, u64 weight)
{
	s64 lag;

	m->sum -= (s64)(*v - m->base) * (s64)before;
	m->weight += weight - before;
	lag = divide_signed((s64)(m->base - *v) * (s64)before, weight);
	*v = m->base - (u64)lag;
	m->sum += (s64)(*v - m->base) * (s64)weight;
}

/* What was at *@v with @weight has used @used, and if it @forgoes what it is owed, that but for @max. Context: as above. */
static __always_inline void use(struct mean *m, u64 *v, u64 weight, u64 used, u64 now_ns,
				bool forgoes, u64 max)
{
	u64 lag = mean_at(m, now_ns) - (*v + used);
	s64 shift;

	if (forgoes && (s64)lag > (s64)max)
		used += lag - max;
	*v += used;
	m->sum += (s64)(used * weight);
	/* Keep the sum small, so that products stay in range. */
	shift = m->weight ? divide_signed(m->sum, m->weight) : 0;
	m->base += (u64)shift;
	m->sum -= shift * (s64)m->weight;
}

/* The most lag that is kept, in virtual time. */
static __always_inline u64 lag_of_slices(u64 ns, u64 weight)
{
	ns *= LAG_SLICES;
	return vtime_of(ns > LAG_MIN_NS ? ns : LAG_MIN_NS, weight);
}

/* ---- groups: from group @nr up to the root; eevdf_lock is held ------------------- */

/* A task of it runs since @at_ns, or did. */
static __always_inline void groups_run(u32 nr, u64 at_ns, bool begins)
{
	u32 i;

	for (i = 0; i < GROUP_LEVELS_MAX; i++) {
		struct mean *m = mean_for(nr);
		const struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);

		if (!m || !g)
			break;
		m->nr_running = begins ? m->nr_running + 1 : m->nr_running - 1;
		m->since_ns = begins ? m->since_ns + at_ns : m->since_ns - at_ns;
		if (begins)
			m->updated_ns = at_ns;
		if (!nr)
			break;
		nr = g->parent;
	}
}

/* Something in it is runnable: its lag is what it was, and if it owes it stays where it was. */
static __always_inline void groups_join(u32 nr, u64 now_ns, bool was_aside)
{
	u32 i;

	for (i = 0; nr && i < GROUP_LEVELS_MAX; i++) {
		struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);
		struct mean *m = g ? ARRAY_ELEM_PTR(means, g->parent, GROUPS_MAX) : NULL;
		u64 v;

		if (!m || g->counted)
			break;
		v = was_aside ? mean_of_aside(m, now_ns) : mean_at(m, now_ns);
		g->counted = g->weight ? g->weight : 1;
		if (was_aside) {
			g->deadline += v - (u64)g->lag - g->vtime;
			g->vtime = v - (u64)g->lag;
		} else if (g->lag >= 0 || time_before(g->vtime, v)) {
			s64 lag = g->lag > 0 ? g->lag : 0;

			if (m->weight)
				lag += divide_signed(lag * (s64)g->counted, m->weight);
			g->vtime = v - (u64)lag;
			g->deadline = g->vtime + vtime_of(slice_ns, g->counted);
		}
		count(m, g->vtime, g->counted);
		nr = g->parent;
	}
}

/* Maybe nothing in it is runnable any more. */
static __always_inline void groups_leave(u32 nr, u64 now_ns, bool is_aside)
{
	u32 i;

	for (i = 0; nr && i < GROUP_LEVELS_MAX; i++) {
		struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);
		struct mean *m = g ? ARRAY_ELEM_PTR(means, g->parent, GROUPS_MAX) : NULL;
		const struct mean *own = ARRAY_ELEM_PTR(means, nr, GROUPS_MAX);
		s64 max;
		u64 v;

		if (!m || !own || own->weight || !g->counted)
			break;
		v = is_aside ? mean_of_aside(m, now_ns) : mean_at(m, now_ns);
		max = (s64)lag_of_slices(slice_ns, g->counted);
		uncount(m, g->vtime, g->counted, v);
		g->lag = (s64)(v - g->vtime);
		if (g->lag > max)
			g->lag = max;
		if (g->lag < -max) {
			g->deadline -= g->vtime - (v + (u64)max);
			g->vtime = v + (u64)max;
			g->lag = -max;
		}
		g->counted = 0;
		nr = g->parent;
	}
}

/* A task of it has used @used_ns in the last @passed_ns. */
static __always_inline void groups_charge(u32 nr, u64 used_ns, u64 passed_ns, u64 now_ns,
					  bool forgoes)
{
	u32 i;

	for (i = 0; nr && i < GROUP_LEVELS_MAX; i++) {
		struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);
		struct mean *m = g ? ARRAY_ELEM_PTR(means, g->parent, GROUPS_MAX) : NULL;

		if (!m || !g->counted)
			break;
		m->since_ns += passed_ns;
		use(m, &g->vtime, g->counted, vtime_of(used_ns, g->counted), now_ns, forgoes,
		    lag_of_slices(slice_ns, g->counted));
		if (g->weight && g->weight != g->counted) {
			recount(m, &g->vtime, g->counted, g->weight);
			g->counted = g->weight;
			g->deadline = g->vtime;
		}
		if (time_before_eq(g->deadline, g->vtime + vtime_of(SLICE_SLACK_NS, g->counted)))
			g->deadline = g->vtime + vtime_of(slice_ns, g->counted);
		nr = g->parent;
	}
}
