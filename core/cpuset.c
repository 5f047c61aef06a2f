/* SPDX-License-Identifier: MIT */
/*
 * cpuset.c - the CPUs of cgroups, as cgroup v2 has them (S49).
 *
 *	configured (cpuset.cpus) and the parent's effective CPUs -> effective; none in common: the parent's
 *	effective and what the task asked for -> p->cpus_ptr; none in common: effective
 *
 * A cgroup has a cpuset of its own where its parent gives its children some, which it does once
 * one of them, or of those below, is given CPUs; another one is in that of the cgroup above it. The
 * root's is all CPUs. Functions have the names of their counterparts in kernel/cgroup/cpuset.c.
 *
 * Invariant: a mask that a task has is not written any more; equal ones are one, but for those of
 * one CPU that a host gives to sl_task_bind(). So a pointer tells whether a cpuset has changed, and
 * no lock is needed to read a task's.
 *
 * Called by hosts and by hotplug.c. Read next: cgroup.c.
 */
#include "core.h"

static u32 nr_mask_words(void)
{
	return (sl_core.nr_cpus + 63) / 64;
}

/* Of this machine's CPUs. */
static bool mask_equal(const struct cpumask *a, const struct cpumask *b)
{
	for (u32 i = 0; i < nr_mask_words(); i++) {
		if ((READ_ONCE(a->bits[i]) ^ READ_ONCE(b->bits[i])) & sl_core.possible.bits[i])
			return false;
	}
	return true;
}

static int alloc_kept_masks(void)
{
	struct sl_masks *block = sl_host_alloc(sizeof(*block));

	if (!block)
		return -ENOMEM;
	block->next = sl_core.masks;
	sl_core.masks = block;
	return 0;
}

/* Context: tables_lock held. */
static const struct cpumask *find_kept_mask(const struct cpumask *cpus)
{
	for (const struct sl_masks *block = sl_core.masks; block; block = block->next) {
		for (u32 i = 0; i < block->nr; i++) {
			if (mask_equal(&block->cpus[i], cpus))
				return &block->cpus[i];
		}
	}
	return NULL;
}

/* Context: tables_lock held. Return: NULL: no memory. */
static const struct cpumask *add_kept_mask(const struct cpumask *cpus)
{
	struct cpumask *mask;

	if (sl_core.masks->nr == SL_MASKS_PER_BLOCK && alloc_kept_masks())
		return NULL;
	mask = &sl_core.masks->cpus[sl_core.masks->nr++];
	for (u32 i = 0; i < nr_mask_words(); i++)
		WRITE_ONCE(mask->bits[i], cpus->bits[i] & sl_core.possible.bits[i]);
	return mask;
}

/* A mask that stays, with those of @cpus that exist; NULL: no memory. Context: no queue locked. */
static const struct cpumask *try_keep_mask(const struct cpumask *cpus)
{
	const struct cpumask *mask;

	if (mask_equal(cpus, &sl_core.possible))
		return &sl_core.possible;
	sl_lock(&sl_core.tables_lock);
	mask = find_kept_mask(cpus);
	if (!mask)
		mask = add_kept_mask(cpus);
	sl_unlock(&sl_core.tables_lock);
	return mask;
}

static const struct cpumask *keep_mask(const struct cpumask *cpus)
{
	const struct cpumask *mask = try_keep_mask(cpus);

	SL_ASSERT(mask);
	return mask;
}

static void free_kept_masks(void)
{
	struct sl_masks *block;

	while ((block = sl_core.masks)) {
		sl_core.masks = block->next;
		sl_host_free(block, sizeof(*block));
	}
}

/* Return: whether @a and @b have CPUs in common, which @both gets. */
static bool masks_meet(struct cpumask *both, const struct cpumask *a, const struct cpumask *b)
{
	u64 any = 0;

	*both = (struct cpumask){ 0 };
	for (u32 i = 0; i < nr_mask_words(); i++) {
		both->bits[i] = a->bits[i] & b->bits[i] & sl_core.possible.bits[i];
		any |= both->bits[i];
	}
	return any;
}

/* Return: a mask that stays; NULL: they have none in common. */
static const struct cpumask *common_cpus(const struct cpumask *a, const struct cpumask *b)
{
	struct cpumask both;

	return masks_meet(&both, a, b) ? keep_mask(&both) : NULL;
}

/* @cgrp: NULL: the root. */
static struct sl_cgroup *cgroup_of(struct cgroup *cgrp)
{
	return cgrp ? (struct sl_cgroup *)cgrp : &sl_core.cgroups[0];
}

/* Whose cpuset the tasks of @cgrp are in. */
static struct sl_cgroup *cpuset_of(const struct cgroup *cgrp)
{
	struct sl_cgroup *g = (struct sl_cgroup *)cgrp;

	/* Another one may be just given its own. */
	while (!smp_load_acquire(&g->cgroup.subsys[cpuset_cgrp_id]))
		g = g->parent;
	return g;
}

static const struct cpumask *effective_cpus(const struct cgroup *cgrp)
{
	return READ_ONCE(cpuset_of(cgrp)->cpuset.effective_cpus);
}

/* Where tasks of @cgrp may run. Those of the root keep CPUs that are offline. */
static const struct cpumask *cpuset_cpus(const struct cgroup *cgrp)
{
	return cpuset_of(cgrp)->parent ? effective_cpus(cgrp) : &sl_core.possible;
}

/* Where they should. Maybe nowhere: what is configured is empty where nothing was. */
static const struct cpumask *configured_cpus(const struct cgroup *cgrp)
{
	return keep_mask(cpuset_of(cgrp)->cpuset.cpus_allowed);
}

/* Of those that a task asks for, which it may have; NULL: none. */
static const struct cpumask *asked_cpus(const struct cpumask *user, const struct cpumask *cpus)
{
	return cpus == &sl_core.possible ? user : common_cpus(user, cpus);
}

/* What @t has asked for among @cpus; all of them if that is none. */
static void set_cpus_allowed_ptr(struct sl_task *t, const struct cpumask *cpus)
{
	const struct cpumask *user = READ_ONCE(t->user_mask);
	const struct cpumask *mask = user ? asked_cpus(user, cpus) : NULL;

	set_cpus_allowed(t, mask ? mask : cpus);
}

/**
 * sl_task_bind - a task stays on its CPU, whatever it asks for or its cgroup has
 * @t: runs here
 * @only: the mask of this CPU alone, which stays; NULL: it goes by the other two again
 *
 * What else would change its CPUs meanwhile does so when this ends.
 *
 * Context: no lock of the core held; a lock of the host's, which all that changes its CPUs is called with.
 */
void sl_task_bind(struct sl_task *t, const struct cpumask *only)
{
	t->is_bound = false;
	if (only)
		set_cpus_allowed(t, only);
	else
		set_cpus_allowed_ptr(t, cpuset_cpus(t->p.cgroups->dfl_cgrp));
	t->is_bound = only;
}

static void cpuset_attach(struct sl_task *t, const struct cgroup *from, const struct cgroup *to)
{
	if (effective_cpus(from) != effective_cpus(to))
		set_cpus_allowed_ptr(t, cpuset_cpus(to));
}

static const struct cpumask *compute_effective_cpumask(const struct sl_cgroup *g)
{
	const struct cpumask *above = effective_cpus(&g->parent->cgroup);
	const struct cpumask *common = common_cpus(g->cpuset.cpus_allowed, above);

	return common ? common : above;
}

static void give_cpuset(struct sl_cgroup *g)
{
	g->cpuset.effective_cpus = g->parent ? compute_effective_cpumask(g) : &sl_core.possible;
	smp_store_release(&g->cgroup.subsys[cpuset_cgrp_id], &g->cpuset.css);
}

static void cpuset_update_tasks_cpumask(const struct sl_cgroup *g)
{
	struct sl_task *t;

	for_each_task(t) {
		if (cpuset_of(READ_ONCE(t->p.cgroups)->dfl_cgrp) == g)
			set_cpus_allowed_ptr(t, g->cpuset.effective_cpus);
	}
}

/* What is configured, or which CPUs are online, has changed. A parent stands before its children. */
static void update_cpusets(void)
{
	struct sl_cgroup *g = sl_core.cgroups;
	struct cpumask online = { 0 };

	for_each_cpu(cpu) {
		if (!READ_ONCE(cpu->is_offline))
			online.bits[cpu->id / 64] |= 1ULL << (cpu->id % 64);
	}
	WRITE_ONCE(g->cpuset.effective_cpus, keep_mask(&online));
	for (u32 i = 1; i < sl_core.nr_cgroups; i++) {
		const struct cpumask *cpus;

		g = &sl_core.cgroups[i];
		if (!g->exists || !g->cgroup.subsys[cpuset_cgrp_id])
			continue;
		cpus = compute_effective_cpumask(g);
		if (cpus == g->cpuset.effective_cpus)
			continue;
		WRITE_ONCE(g->cpuset.effective_cpus, cpus);
		cpuset_update_tasks_cpumask(g);
	}
}

/**
 * sl_cgroup_set_cpus - what is written into a cgroup's cpuset.cpus
 * @cgrp: exists, not the root
 * @cpus: copied; none: those of its parent
 *
 * The controller is given to it and to all others at its level and above, on the way from the root.
 *
 * Context: no lock held; see the top of cgroup.c.
 * Return: 0, or -EINVAL: one of them is no CPU of this machine.
 */
int sl_cgroup_set_cpus(struct cgroup *cgrp, const struct cpumask *cpus)
{
	struct sl_cgroup *g = cgroup_of(cgrp);

	SL_ASSERT(g->exists && g->parent);
	for (u32 i = 0; i < SCX_CPUS_MAX / 64; i++) {
		if (cpus->bits[i] & ~sl_core.possible.bits[i])
			return -EINVAL;
	}
	for (struct sl_cgroup *above = g->parent; above; above = above->parent)
		above->gives_cpusets = true;
	/* A parent stands before its children. */
	for (u32 i = 1; i < sl_core.nr_cgroups; i++) {
		struct sl_cgroup *each = &sl_core.cgroups[i];

		if (each->exists && each->parent->gives_cpusets &&
		    !each->cgroup.subsys[cpuset_cgrp_id])
			give_cpuset(each);
	}
	*g->cpuset.cpus_allowed = *cpus;
	update_cpusets();
	flush(sl_this_cpu());
	return 0;
}
