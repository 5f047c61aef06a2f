/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * groups.h - what a task's weight comes to among the cgroups that it is in.
 *
 * A cgroup is given its part by its weight, and divides it among the tasks or cgroups in
 * it that want to run, by theirs. So of all that is given, a task's part goes by
 *
 *	its weight x (weight of its group / weight of all that is runnable in the group)
 *
 * and so on for each group further up: one queue of all tasks then does what a tree of
 * queues would do ("flat"), but for what changes while a task waits, which counts from
 * its next charge on, and but for sleepers: each task is placed as one, though the rest of
 * its group went on. A tree of queues is in group_tree.h.
 *
 * A cgroup's quota is kept as well: see group_quota.h.
 *
 * Included after the knob `groups`. Of more than GROUPS_MAX cgroups at once, and of more
 * than GROUP_LEVELS_MAX levels with the root, the tasks of the others count as their parents',
 * and their quotas are not kept.
 * Read next: policies/cfs.bpf.c, a user.
 */
#ifndef SCX_POLICY_GROUPS_H
#define SCX_POLICY_GROUPS_H

#include <scx/common.bpf.h>
#include <scx/task_ctx.h>

enum { GROUPS_NONE, GROUPS_FLAT, GROUPS_TREE };

#define GROUPS_MAX 64
#define GROUP_LEVELS_MAX 16
#define GROUP_SCALE 16ULL /* parts are in sixteenths of a weight */

/*
 * Whether a task counts as runnable. One that waits in a group without budget is aside: it
 * does not count.
 *
 *	OUT --runnable--> COUNTED <--set aside, put back--> ASIDE
 *	 ^                   |                                |
 *	 +---- quiescent ----+--------------------------------+
 */
enum group_state { GROUP_OUT, GROUP_COUNTED, GROUP_ASIDE };

/* What a task keeps. */
struct group_task {
	u32 nr;	     /* its group */
	u32 in;	     /* where it is counted, while it is runnable, ... */
	u64 weight;  /* ... and with what */
	u32 state;   /* enum group_state; groups_lock protects it */
	u64 exec_ns; /* its CPU time when a quota was last charged */
};

private(GROUPS) struct bpf_spin_lock groups_lock;
/* The first is the root's. groups_lock protects them, but for reads, which may be late. */
static struct group {
	u64 weight;
	u64 load;  /* weight of what is runnable in it; 0: it does not count in its parent */
	u64 path;  /* a bit for its number, and for each group above it but the root */
	u64 vtime; /* with a tree: in its parent's queue, weighted ns; wraps */
	u64 clock; /* with a tree: how far its own queue has come, weighted ns; wraps */
	/* With a tree of eevdf, in its parent's queue: */
	u64 deadline; /* virtual time */
	s64 lag;      /* virtual time; while it does not count */
	u64 counted;  /* weight with which it counts; 0: it does not */
	/* The quota, if its bit of limited_groups is set: */
	u64 period_ns;
	u64 quota_ns;	/* given in each period ... */
	u64 burst_ns;	/* ... and so much may be left over from others */
	s64 left_ns;	/* budget; what was used beyond it is owed */
	u32 nr_running; /* with a tree: tasks on CPUs now */
	u32 parent;
	bool is_used;
} groups_of[GROUPS_MAX];

/* Bits by number, as in a path; groups_lock protects them, but for reads. */
static u64 limited_groups; /* have a quota */
static u64 spent_groups;   /* and have used it up: they are throttled */

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} group_numbers SEC(".maps");

/* Whether group @nr is one of @path. The root always is. */
static inline bool is_on_path(u32 nr, u64 path)
{
	return !nr || (path >> (nr % GROUPS_MAX) & 1);
}

static inline u64 path_of(u32 nr)
{
	const struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);

	return g ? g->path : 0;
}

/*
 * Add @weight to what is runnable in group @nr, or take it out. Return: how many groups, from @nr
 * upwards, had nothing runnable before. Context: groups_lock is held.
 */
static __always_inline u32 count_load(u32 nr, u64 weight, bool comes)
{
	u32 i;

	for (i = 0; i < GROUP_LEVELS_MAX; i++) {
		struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);
		bool is_first;

		if (!g)
			return i;
		is_first = !g->load;
		g->load = comes ? g->load + weight : g->load - weight;
		/* Only as it comes, or has nothing any more, its parent is concerned. */
		if (!nr || (comes ? !is_first : g->load > 0))
			return i;
		weight = g->weight;
		nr = g->parent;
	}
	return i;
}

/* For ops.runnable. Return: as count_load(). */
static u32 group_enter(struct group_task *t, u64 weight)
{
	u32 nr_came;

	if (groups == GROUPS_NONE)
		return 0;
	t->in = t->nr;
	t->weight = weight;
	bpf_spin_lock(&groups_lock);
	t->state = GROUP_COUNTED;
	nr_came = count_load(t->in, weight, true);
	bpf_spin_unlock(&groups_lock);
	return nr_came;
}

/* Count @t no more if it is counted. Return: whether it was. */
static __always_inline bool group_uncount(struct group_task *t, u32 state)
{
	bool was_counted;

	bpf_spin_lock(&groups_lock);
	was_counted = t->state == GROUP_COUNTED;
	if (was_counted)
		count_load(t->in, t->weight, false);
	if (was_counted || state == GROUP_OUT)
		t->state = state;
	bpf_spin_unlock(&groups_lock);
	return was_counted;
}

/* Count @t again if it is aside. Return: as count_load(). */
static __always_inline u32 group_recount(struct group_task *t)
{
	u32 nr_came = 0;

	bpf_spin_lock(&groups_lock);
	if (t->state == GROUP_ASIDE) {
		t->state = GROUP_COUNTED;
		nr_came = count_load(t->in, t->weight, true);
	}
	bpf_spin_unlock(&groups_lock);
	return nr_came;
}

/* For ops.quiescent. */
static void group_leave(struct group_task *t)
{
	if (groups != GROUPS_NONE)
		group_uncount(t, GROUP_OUT);
}

/* Return: the part of a runnable task that has @weight in its group, in 1/GROUP_SCALE; at least 1. */
static u64 group_part(const struct group_task *t, u64 weight)
{
	u64 part = weight * GROUP_SCALE;
	u32 nr = t->in;
	u32 i;

	for (i = 0; groups != GROUPS_NONE && nr && i < GROUP_LEVELS_MAX; i++) {
		const struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);

		if (!g)
			break;
		part = part * g->weight / (g->load ? g->load : 1);
		nr = g->parent;
	}
	return part ? part : 1;
}

static u32 group_number(struct cgroup *cgrp)
{
	u32 *nr = bpf_cgrp_storage_get(&group_numbers, cgrp, NULL, 0);

	return nr ? *nr : 0;
}

/* For ops.init_task. */
static void group_init_task(struct group_task *t, struct scx_init_task_args *args)
{
	struct cgroup *cgrp;

	if (groups == GROUPS_NONE)
		return;
	/* Linux's verifier does not trust the pointer itself. */
	cgrp = bpf_cgroup_from_id(args->cgroup->kn->id);
	if (!cgrp)
		return;
	t->nr = group_number(cgrp);
	bpf_cgroup_release(cgrp);
}

/* Context: groups_lock is held. Return: a free place for a group; 0: there is none. */
static __always_inline u32 take_group(u32 parent, u64 weight)
{
	const struct group *above = ARRAY_ELEM_PTR(groups_of, parent, GROUPS_MAX);
	u32 nr;

	for (nr = 1; nr < GROUPS_MAX && above; nr++) {
		if (groups_of[nr].is_used)
			continue;
		groups_of[nr] = (struct group){ .weight = weight,
						.path = above->path | 1ULL << nr,
						.parent = parent,
						.is_used = true };
		return nr;
	}
	return 0;
}

/* For ops.cgroup_init: parents come first. */
static s32 group_init(struct cgroup *cgrp, u64 weight)
{
	struct cgroup *parent = NULL;
	u32 *number, nr, parent_nr = 0;

	if (groups == GROUPS_NONE || !cgrp->level)
		return 0;
	number = bpf_cgrp_storage_get(&group_numbers, cgrp, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!number)
		return -ENOMEM;
	parent = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	if (parent) {
		parent_nr = group_number(parent);
		bpf_cgroup_release(parent);
	}
	bpf_spin_lock(&groups_lock);
	nr = cgrp->level < GROUP_LEVELS_MAX ? take_group(parent_nr, weight) : 0;
	bpf_spin_unlock(&groups_lock);
	*number = nr ? nr : parent_nr;
	return 0;
}

/* Whether group @nr is that of @cgrp alone, and not the parent's that it shares. */
static bool has_group(struct cgroup *cgrp, u32 nr)
{
	struct cgroup *parent = cgrp->level ? bpf_cgroup_ancestor(cgrp, cgrp->level - 1) : NULL;
	bool is_own = false;

	if (parent) {
		is_own = group_number(parent) != nr;
		bpf_cgroup_release(parent);
	}
	return is_own;
}

/* For ops.cgroup_exit: no task is in it. */
static void group_exit(struct cgroup *cgrp)
{
	u32 nr = group_number(cgrp);
	struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);

	if (!nr || !g || !has_group(cgrp, nr))
		return;
	bpf_spin_lock(&groups_lock);
	limited_groups &= ~(1ULL << (nr % GROUPS_MAX));
	spent_groups &= ~(1ULL << (nr % GROUPS_MAX));
	g->is_used = false;
	bpf_spin_unlock(&groups_lock);
}

/* For ops.cgroup_set_weight. */
static void group_set_weight(struct cgroup *cgrp, u64 weight)
{
	u32 nr = group_number(cgrp);
	struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);

	if (!nr || !g || !has_group(cgrp, nr))
		return;
	bpf_spin_lock(&groups_lock);
	if (g->load)
		count_load(g->parent, weight, true);
	if (g->load)
		count_load(g->parent, g->weight, false);
	g->weight = weight;
	bpf_spin_unlock(&groups_lock);
}

#include <scx/policy/group_quota.h>

/* The operations of a policy whose struct task_ctx has a `group`. A task that moves is not runnable then. */
#define DEFINE_GROUP_OPS(name)						\
s32 BPF_STRUCT_OPS_SLEEPABLE(name##_cgroup_init, struct cgroup *cgrp,	\
			     struct scx_cgroup_init_args *args)		\
{									\
	s32 err = group_init(cgrp, args->weight);			\
									\
	return err ? err : quota_init(cgrp, args);			\
}									\
									\
void BPF_STRUCT_OPS(name##_cgroup_exit, struct cgroup *cgrp)		\
{									\
	group_exit(cgrp);						\
}									\
									\
void BPF_STRUCT_OPS(name##_cgroup_set_weight, struct cgroup *cgrp, u32 weight) \
{									\
	group_set_weight(cgrp, weight);					\
}									\
									\
void BPF_STRUCT_OPS(name##_cgroup_set_bandwidth, struct cgroup *cgrp,	\
		    u64 period_us, u64 quota_us, u64 burst_us)		\
{									\
	quota_set(cgrp, period_us, quota_us, burst_us);			\
}									\
									\
void BPF_STRUCT_OPS(name##_cgroup_move, struct task_struct *p,		\
		    struct cgroup *from, struct cgroup *to)		\
{									\
	struct task_ctx *tc = task_ctx(p);				\
									\
	if (tc)								\
		tc->group.nr = group_number(to);			\
}

#define GROUP_OPS(name)							\
	.cgroup_init = (void *)name##_cgroup_init,			\
	.cgroup_exit = (void *)name##_cgroup_exit,			\
	.cgroup_set_weight = (void *)name##_cgroup_set_weight,		\
	.cgroup_set_bandwidth = (void *)name##_cgroup_set_bandwidth,	\
	.cgroup_move = (void *)name##_cgroup_move

#endif
