/* SPDX-License-Identifier: MIT */
/*
 * cgroup.c - the tree of cgroups, and what a policy hears of it.
 *
 * A cgroup has a weight and a bandwidth that mean what the policy makes of them: the
 * core tells it, and limits nothing itself (S44). The root always exists. One that was
 * removed keeps its memory, so that a policy's stale pointer does no harm; hence there
 * are at most SL_CGROUPS_MAX in a machine's life, and a reference is no more than the pointer.
 * Its CPUs are in cpuset.c.
 *
 * Called by hosts. The tree changes from one place at a time, and not while a policy
 * comes or goes: that is the host's business. Tasks come and go meanwhile.
 *
 * Read next: tasks.c, where tasks come and go.
 */
#include "core.h"

static struct cgroup *root_cgroup(void)
{
	return &sl_core.cgroups[0].cgroup;
}

/* Where the policy has @t; behind that of `p` in the midst of a move. */
static struct cgroup *sched_cgroup(const struct sl_task *t)
{
	return &sl_core.cgroups[READ_ONCE(t->cgroup_idx)].cgroup;
}

static void set_sched_cgroup(struct sl_task *t)
{
	WRITE_ONCE(t->cgroup_idx, (u8)cgroup_of(t->p.cgroups->dfl_cgrp)->idx);
}

static struct sl_cgroup *add_cgroup(struct sl_cgroup *parent, const char *name, u32 weight)
{
	struct sl_cgroup *g = &sl_core.cgroups[sl_core.nr_cgroups];

	*g = (struct sl_cgroup){
		.cgroup = {
			.kn = &g->kn,
			.self.cgroup = &g->cgroup,
			.self.parent = parent ? &parent->cgroup.self : NULL,
			.dom_cgrp = &g->cgroup,
			.level = parent ? parent->cgroup.level + 1 : 0,
		},
		.set.dfl_cgrp = &g->cgroup,
		.kn = { .name = g->name, .id = sl_core.nr_cgroups + 1ULL },
		.parent = parent,
		.args = { .weight = weight, .bw_period_us = 100000, .bw_quota_us = ~0ULL },
		.idx = sl_core.nr_cgroups,
		.exists = true,
	};
	if (parent)
		__builtin_memcpy(g->cgroup.ancestors, parent->cgroup.ancestors,
				 sizeof(g->cgroup.ancestors));
	g->cgroup.ancestors[g->cgroup.level] = &g->cgroup;
	sl_print_to(g->name, sizeof(g->name), "%s", name);
	g->cpuset.css.cgroup = &g->cgroup;
	if (!parent)
		*g->cpuset.cpus_allowed = sl_core.possible;
	if (!parent || parent->gives_cpusets)
		give_cpuset(g);
	return g;
}

/* From now on it is found by its id. */
static void publish_cgroup(struct sl_cgroup *g)
{
	smp_store_release(&sl_core.nr_cgroups, g->idx + 1);
}

/* First of all, so that no storage is made for it any more. */
static void forget_cgroup(struct sl_cgroup *g)
{
	smp_store_release(&g->exists, false);
	sl_lock(&sl_core.tables_lock);
	forget_storage(BPF_MAP_TYPE_CGRP_STORAGE, g->idx);
	sl_unlock(&sl_core.tables_lock);
}

/* Context: the CPUs are known. */
static int alloc_cgroups(void)
{
	sl_core.cgroups = sl_host_alloc(SL_CGROUPS_MAX * sizeof(struct sl_cgroup));
	if (!sl_core.cgroups || alloc_kept_masks())
		return -ENOMEM;
	publish_cgroup(add_cgroup(NULL, "", 100));
	return 0;
}

static void free_cgroups(void)
{
	sl_host_free(sl_core.cgroups, SL_CGROUPS_MAX * sizeof(struct sl_cgroup));
	free_kept_masks();
}

/* A parent comes before its children, as it was made before them. */
static int init_cgroups(struct sl_cpu *this_cpu, const struct sched_ext_ops *ops)
{
	int err = 0;

	for (u32 i = 0; !err && i < sl_core.nr_cgroups; i++) {
		struct sl_cgroup *g = &sl_core.cgroups[i];

		if (!g->exists)
			continue;
		err = SL_CALL_ERR(this_cpu, ops->cgroup_init, cgroup_init, NULL, &g->cgroup,
				  &g->args);
		g->is_known = !err;
	}
	return err;
}

/* And leaves after them. */
static void exit_cgroups(struct sl_cpu *this_cpu)
{
	for (u32 i = sl_core.nr_cgroups; i-- > 0;) {
		struct sl_cgroup *g = &sl_core.cgroups[i];

		if (g->is_known)
			SL_CALL_LOADED(this_cpu, cgroup_exit, NULL, &g->cgroup);
	}
}

static void forget_cgroups(void)
{
	for (u32 i = 0; i < sl_core.nr_cgroups; i++)
		sl_core.cgroups[i].is_known = false;
}

/**
 * sl_cgroup_create - make a cgroup
 * @parent: exists; NULL: the root
 * @name: of its own, without those above it; cut if it is too long
 * @weight: 1..10000
 * @made: out: the cgroup; unchanged on failure
 *
 * Context: no lock held; see the top of the file.
 * Return: 0; -ENOSPC: too many, or too deep; or what ops.cgroup_init() returned: then there is none.
 */
int sl_cgroup_create(struct cgroup *parent, const char *name, u32 weight, struct cgroup **made)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	struct sl_cgroup *g;
	int err = 0;

	SL_ASSERT(weight >= 1 && weight <= 10000);
	SL_ASSERT(cgroup_of(parent)->exists);
	if (sl_core.nr_cgroups == SL_CGROUPS_MAX ||
	    cgroup_of(parent)->cgroup.level == SL_CGROUP_DEPTH_MAX - 1)
		return -ENOSPC;
	g = add_cgroup(cgroup_of(parent), name, weight);
	if (!sl_is_bypassed()) {
		err = SL_CALL_ERR(this_cpu, SL_HAS_OP(cgroup_init), cgroup_init, NULL, &g->cgroup,
				  &g->args);
		g->is_known = !err;
	}
	if (err) {
		forget_cgroup(g);
	} else {
		publish_cgroup(g);
		*made = &g->cgroup;
	}
	flush(this_cpu);
	return err;
}

/* In the order in which they were made. */
static struct sl_cgroup *next_child(const struct sl_cgroup *parent, const struct sl_cgroup *after)
{
	u32 nr = smp_load_acquire(&sl_core.nr_cgroups);

	for (u32 i = after ? after->idx + 1 : 0; i < nr; i++) {
		struct sl_cgroup *g = &sl_core.cgroups[i];

		if (g->parent == parent && smp_load_acquire(&g->exists))
			return g;
	}
	return NULL;
}

bool sl_cgroup_has_cgroups(struct cgroup *cgrp)
{
	return next_child(cgroup_of(cgrp), NULL);
}

/* Context: no lock held. */
bool sl_cgroup_has_tasks(struct cgroup *cgrp)
{
	struct sl_task *t;
	bool has = false;

	lock_tasks();
	for_each_task(t)
		has |= READ_ONCE(t->p.cgroups) == &cgroup_of(cgrp)->set;
	unlock_tasks();
	return has;
}

/* Context: as above. Return: 0, or -EBUSY: it has children or tasks, or is the root. */
int sl_cgroup_remove(struct cgroup *cgrp)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	struct sl_cgroup *g = cgroup_of(cgrp);

	SL_ASSERT(g->exists);
	if (!g->parent || sl_cgroup_has_cgroups(cgrp) || sl_cgroup_has_tasks(cgrp))
		return -EBUSY;
	if (g->is_known)
		SL_CALL_OP(this_cpu, cgroup_exit, NULL, &g->cgroup);
	g->is_known = false;
	forget_cgroup(g);
	flush(this_cpu);
	return 0;
}

/* @weight: 1..10000; the policy hears of one that is another. Context: as above. */
void sl_cgroup_set_weight(struct cgroup *cgrp, u32 weight)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	struct sl_cgroup *g = cgroup_of(cgrp);

	SL_ASSERT(g->exists && weight >= 1 && weight <= 10000);
	if (g->args.weight == weight)
		return;
	if (g->is_known)
		SL_CALL_OP(this_cpu, cgroup_set_weight, NULL, &g->cgroup, weight);
	g->args.weight = weight;
	flush(this_cpu);
}

/* @quota_us: ~0: no limit. Context: as above. */
void sl_cgroup_set_bandwidth(struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	struct sl_cgroup *g = cgroup_of(cgrp);
	bool is_new = g->args.bw_period_us != period_us || g->args.bw_quota_us != quota_us ||
		      g->args.bw_burst_us != burst_us;

	SL_ASSERT(g->exists);
	if (is_new && g->is_known)
		SL_CALL_OP(this_cpu, cgroup_set_bandwidth, NULL, &g->cgroup, period_us, quota_us,
			   burst_us);
	g->args.bw_period_us = period_us;
	g->args.bw_quota_us = quota_us;
	g->args.bw_burst_us = burst_us;
	flush(this_cpu);
}

/**
 * sl_task_finish_move - the policy is told that @t is in another cgroup
 * @t: sl_task_set_cgroup() returned 1; where that returned 0 it has come here
 *
 * Context: as there.
 * Return: 0; 1: it still runs where it may not any more.
 */
int sl_task_finish_move(struct sl_task *t)
{
	struct cgroup *from = sched_cgroup(t);
	struct cgroup *to = t->p.cgroups->dfl_cgrp;
	struct change c;

	if (smp_load_acquire(&t->state) == SL_TASK_RUNNING && !sl_may_run_on(t, READ_ONCE(t->cpu)))
		return 1;
	/* A policy that was loaded meanwhile knows it there. */
	if (from == to)
		return 0;
	c = begin_change(t);
	set_sched_cgroup(t);
	SL_CALL_OP(sl_this_cpu(), cgroup_move, t, &t->p, from, to);
	end_change(t, c);
	return 0;
}

/**
 * sl_task_set_cgroup - move a task to a cgroup
 * @t: set up, not in the middle of a move
 * @cgrp: exists; NULL: the root
 *
 * A task that is not attached yet is simply in it: then ops.init_task() hears so. Of another
 * one the policy is asked; then it gets the CPUs of @cgrp (S49), and goes to one of them; then
 * the policy is told.
 *
 * Context: no lock held, any CPU; see the top of the file.
 * Return: 0; 1: it runs where it may not any more, and sl_task_finish_move() has to be
 * called once it runs elsewhere; or the errno of ops.cgroup_prep_move(): then it stays where it is.
 */
int sl_task_set_cgroup(struct sl_task *t, struct cgroup *cgrp)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	struct cgroup *from = t->p.cgroups->dfl_cgrp;
	struct cgroup *to = &cgroup_of(cgrp)->cgroup;
	int err;

	SL_ASSERT(cgroup_of(to)->exists && sched_cgroup(t) == from);
	if (from == to)
		return 0;
	if (!t->is_attached) {
		WRITE_ONCE(t->p.cgroups, &cgroup_of(to)->set);
		set_sched_cgroup(t);
		cpuset_attach(t, from, to);
		return 0;
	}
	err = SL_CALL_ERR(this_cpu, SL_HAS_OP(cgroup_prep_move), cgroup_prep_move, t, &t->p, from,
			  to);
	flush(this_cpu);
	if (err > 0 || err < -4095) {
		scx_error(t, "ops.cgroup_prep_move() returned an invalid errno %d", err);
		err = -EPROTO;
	}
	if (err)
		return err;
	WRITE_ONCE(t->p.cgroups, &cgroup_of(to)->set);
	cpuset_attach(t, from, to);
	return sl_task_finish_move(t);
}

/* ---- what a policy calls --------------------------------------------------- */

/* The cgroup of the task that the operation is about; see S44. */
struct cgroup *scx_bpf_task_cgroup(struct task_struct *p)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	enum sl_callback in = this_cpu->callback;

	if (p && this_cpu->callback_task == sl_task_of(p) && in != SL_IN_dispatch &&
	    in != SL_IN_init_task && in != SL_IN_cgroup_prep_move)
		return sched_cgroup(sl_task_of(p));
	scx_error(sl_task_of(p), "scx_bpf_task_cgroup() called on a task not being operated on");
	return root_cgroup();
}

struct cgroup *bpf_cgroup_from_id(u64 id)
{
	struct sl_cgroup *g;

	if (id < 1 || id > smp_load_acquire(&sl_core.nr_cgroups))
		return NULL;
	g = &sl_core.cgroups[id - 1];
	return smp_load_acquire(&g->exists) ? &g->cgroup : NULL;
}

struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, s32 level)
{
	return level < 0 || level > cgrp->level ? NULL : cgrp->ancestors[level];
}

/*
 * The tree below a cgroup, itself included, children in the order in which they were made.
 * Tree and table are small: what comes next is searched for.
 */
static struct sl_cgroup *deepest_first(struct sl_cgroup *g)
{
	for (struct sl_cgroup *below; (below = next_child(g, NULL));)
		g = below;
	return g;
}

int bpf_iter_css_new(struct bpf_iter_css *it, struct cgroup_subsys_state *start, u32 flags)
{
	struct sl_cgroup *g = start ? cgroup_of(start->cgroup) : NULL;

	it->root = it->next = NULL;
	it->is_post = flags == BPF_CGROUP_ITER_DESCENDANTS_POST;
	if (!g || (!it->is_post && flags != BPF_CGROUP_ITER_DESCENDANTS_PRE))
		return -EINVAL;
	it->root = start;
	it->next = it->is_post ? &deepest_first(g)->cgroup.self : start;
	return 0;
}

struct cgroup_subsys_state *bpf_iter_css_next(struct bpf_iter_css *it)
{
	struct cgroup_subsys_state *at = it->next;
	struct sl_cgroup *g = at ? cgroup_of(at->cgroup) : NULL;
	struct sl_cgroup *next = g && !it->is_post ? next_child(g, NULL) : NULL;

	it->next = NULL;
	while (g && !next && &g->cgroup.self != it->root) {
		next = next_child(g->parent, g);
		if (it->is_post) {
			next = next ? deepest_first(next) : g->parent;
			break;
		}
		g = g->parent;
	}
	if (next)
		it->next = &next->cgroup.self;
	return at;
}

void bpf_iter_css_destroy(struct bpf_iter_css *it)
{
	it->next = NULL;
}

struct cgroup *bpf_cgroup_acquire(struct cgroup *cgrp)
{
	return cgrp;
}

void bpf_cgroup_release(struct cgroup *cgrp)
{
	(void)cgrp;
}
