/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * group_tree.h - a queue for each cgroup, and the choice from the root down.
 *
 * Queue nr holds the tasks of group nr in the order of their virtual times. The groups in
 * it have a virtual time there, too: the CPU time of all that is below, divided by the
 * group's weight. A choice begins at the root and takes what is first, task or group; of
 * a group again what is first, until that is a task.
 *
 *	root    group a 30, group b 40, task 45      a is first,
 *	  a     task 900, task 910                   and in a the task at 900
 *	  b     task 7
 *
 * The clock of a queue is the furthest that anything has come to run from it; a group
 * that had nothing runnable is placed by it as a sleeper is. A group with fewer tasks than
 * the CPUs that it is worth falls behind; what it may make up for once it has more is
 * bounded, or all others would wait for it.
 *
 * A group is charged when its tasks stop. Until then another CPU takes each of them that
 * runs for a slice, or all CPUs would take tasks of the same group at once.
 *
 * What has a task for a CPU is looked up for each choice: one that may not run there
 * keeps no other from it. No call of a queue is allowed under groups_lock: where another
 * CPU was faster meanwhile, any task will do.
 *
 * Read next: policies/cfs.bpf.c; scx/policy/eevdf_tree.h, another order for which only
 * the paths and what is ready are used from here.
 */
#ifndef SCX_POLICY_GROUP_TREE_H
#define SCX_POLICY_GROUP_TREE_H

#include <scx/policy/groups.h>

/* What tree_choose() gives other than a queue. */
enum { TREE_RIVAL = GROUPS_MAX, TREE_EMPTY };

/* What runs and may run on; it waits in no queue. */
struct tree_rival {
	u64 vtime;
	u64 weight;
	u64 slice_ns; /* what any task is expected to run for */
	u32 nr;	      /* its group; TREE_EMPTY: there is none */
};

/* CPU time by a weight, 100 of which leave it as it is. */
static inline u64 tree_weighted(u64 ns, u64 weight)
{
	return ns * 100 / (weight ? weight : 1);
}

/* For ops.runnable: @nr_came groups, from @nr upwards, had nothing runnable. */
static inline void tree_place(u32 nr, u32 nr_came, u64 credit)
{
	u32 i;

	if (!nr_came)
		return;
	bpf_spin_lock(&groups_lock);
	for (i = 0; nr && i < nr_came && i < GROUP_LEVELS_MAX; i++) {
		struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);
		const struct group *parent;

		parent = g ? ARRAY_ELEM_PTR(groups_of, g->parent, GROUPS_MAX) : NULL;
		if (!parent)
			break;
		if (time_before(g->vtime, parent->clock - credit))
			g->vtime = parent->clock - credit;
		nr = g->parent;
	}
	bpf_spin_unlock(&groups_lock);
}

/*
 * A task of group @nr has used @ns. A group is not charged so much that the rest of its
 * parent would need more than @wait_ns_max to get there.
 */
static inline void tree_charge(u32 nr, u64 ns, u64 wait_ns_max)
{
	u32 i;

	bpf_spin_lock(&groups_lock);
	for (i = 0; nr && i < GROUP_LEVELS_MAX; i++) {
		struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);
		const struct group *parent;
		u64 latest;

		parent = g ? ARRAY_ELEM_PTR(groups_of, g->parent, GROUPS_MAX) : NULL;
		if (!parent)
			break;
		g->vtime += tree_weighted(ns, g->weight);
		latest = parent->clock + tree_weighted(wait_ns_max, parent->load);
		if (time_after(g->vtime, latest))
			g->vtime = latest;
		nr = g->parent;
	}
	bpf_spin_unlock(&groups_lock);
}

/* A task of group @nr is on a CPU, or was until now. */
static inline void tree_count_running(u32 nr, bool is_on)
{
	u32 i;

	bpf_spin_lock(&groups_lock);
	for (i = 0; nr && i < GROUP_LEVELS_MAX; i++) {
		struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);

		if (!g)
			break;
		g->nr_running = is_on ? g->nr_running + 1 : g->nr_running - 1;
		nr = g->parent;
	}
	bpf_spin_unlock(&groups_lock);
}

/* A task of group @nr begins a slice at @vtime: the clocks of its queue and of those above. */
static inline void tree_begin(u32 nr, u64 vtime)
{
	u32 i;

	bpf_spin_lock(&groups_lock);
	for (i = 0; i < GROUP_LEVELS_MAX; i++) {
		struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);

		if (!g)
			break;
		if (time_before(g->clock, vtime))
			g->clock = vtime;
		if (!nr)
			break;
		vtime = g->vtime;
		nr = g->parent;
	}
	bpf_spin_unlock(&groups_lock);
}

/*
 * What stands for a task of group @nr in the first group that it has in common with
 * @path: the task, whose *@vtime and *@weight are given, or a group, whose are put there.
 */
static inline void tree_climb(u32 nr, u64 path, u64 *vtime, u64 *weight)
{
	u32 i;

	for (i = 0; !is_on_path(nr, path) && i < GROUP_LEVELS_MAX; i++) {
		const struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);

		if (!g)
			return;
		*vtime = g->vtime;
		*weight = g->weight;
		nr = g->parent;
	}
}

/* Return: the first task of queue @nr that may run on @cpu; *@vtime and *@weight: its own. */
static inline bool first_queued(u32 nr, s32 cpu, u64 *vtime, u64 *weight)
{
	struct task_struct *p;

	if (!scx_bpf_dsq_nr_queued(nr))
		return false;
	bpf_for_each(scx_dsq, p, nr, 0) {
		if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		*vtime = p->scx.dsq_vtime;
		*weight = p->scx.weight;
		return true;
	}
	return false;
}

/* Return: groups that have a task for @cpu, themselves or below, as a path. */
static inline u64 ready_groups(s32 cpu)
{
	u64 ready = 0, vtime, weight;
	s32 nr;

	bpf_for(nr, 1, GROUPS_MAX) {
		if (first_queued(nr, cpu, &vtime, &weight))
			ready |= path_of(nr);
	}
	return ready;
}

/* The first two of a queue. */
struct tree_first {
	u64 vtime, next_vtime;
	u64 next_weight;
	u64 weight;
	u32 what; /* a group, the queue itself for a task of it, TREE_RIVAL or TREE_EMPTY */
	bool has_next;
};

static __always_inline void compare(struct tree_first *f, u32 what, u64 vtime, u64 weight)
{
	bool is_first = f->what == TREE_EMPTY || time_before(vtime, f->vtime);

	if (is_first && f->what != TREE_EMPTY) {
		f->has_next = true;
		f->next_vtime = f->vtime;
		f->next_weight = f->weight;
	} else if (!is_first && (!f->has_next || time_before(vtime, f->next_vtime))) {
		f->has_next = true;
		f->next_vtime = vtime;
		f->next_weight = weight;
	}
	if (!is_first)
		return;
	f->what = what;
	f->vtime = vtime;
	f->weight = weight;
}

/* What is first in the queue of group @nr, of the groups that are @ready and the tasks. */
static inline void find_first(u32 nr, s32 cpu, u64 ready, const struct tree_rival *rival,
			      struct tree_first *f)
{
	u64 rivals = rival->nr < GROUPS_MAX ? path_of(rival->nr) : 0;
	u64 vtime = 0, weight = 0;
	u32 nr_others;
	s32 child;

	*f = (struct tree_first){ .what = TREE_EMPTY };
	if (first_queued(nr, cpu, &vtime, &weight))
		compare(f, nr, vtime, weight);
	if (rival->nr == nr)
		compare(f, TREE_RIVAL, rival->vtime, rival->weight);
	bpf_for(child, 1, GROUPS_MAX) {
		const struct group *g = ARRAY_ELEM_PTR(groups_of, child, GROUPS_MAX);

		if (!g || g->parent != nr || !is_on_path(child, ready))
			continue;
		nr_others = g->nr_running - is_on_path(child, rivals);
		vtime = g->vtime + tree_weighted(nr_others * rival->slice_ns, g->weight);
		compare(f, child, vtime, g->weight);
	}
}

/* The group that is first is brought up to what it may be behind: @lag_ns of what the next one uses. */
static inline void limit_lag(const struct tree_first *f, u64 lag_ns)
{
	struct group *g = ARRAY_ELEM_PTR(groups_of, f->what, GROUPS_MAX);
	u64 earliest = f->next_vtime - tree_weighted(lag_ns, f->next_weight);

	if (!f->has_next || !g || !time_before(f->vtime, earliest))
		return;
	bpf_spin_lock(&groups_lock);
	g->vtime += earliest - f->vtime;
	bpf_spin_unlock(&groups_lock);
}

/* Return: the queue whose first task is to run on @cpu, TREE_RIVAL or TREE_EMPTY. */
static inline u32 tree_choose(s32 cpu, const struct tree_rival *rival, u64 lag_ns)
{
	u64 ready = ready_groups(cpu);
	struct tree_first f;
	u32 nr = 0;
	s32 level;

	if (rival->nr < GROUPS_MAX)
		ready |= path_of(rival->nr);
	bpf_for(level, 0, GROUP_LEVELS_MAX) {
		find_first(nr, cpu, ready, rival, &f);
		if (f.what == nr || f.what >= GROUPS_MAX)
			return f.what;
		limit_lag(&f, lag_ns);
		nr = f.what;
	}
	return TREE_EMPTY;
}

/* For ops.dispatch. Return: whether a task was taken; if not, @rival runs on. */
static inline bool tree_take(s32 cpu, const struct tree_rival *rival, u64 lag_ns)
{
	u32 nr = tree_choose(cpu, rival, lag_ns);

	if (nr == TREE_RIVAL)
		return false;
	if (nr < GROUPS_MAX && scx_bpf_dsq_move_to_local(nr))
		return true;
	return rival->nr >= GROUPS_MAX && move_first_to_local(GROUPS_MAX);
}

#endif
