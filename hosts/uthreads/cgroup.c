/* SPDX-License-Identifier: MIT */
/*
 * cgroup.c - groups of threads: made, changed, moved to.
 *
 * The core's own are what a program gets. They stay, so that a thread may be created in
 * one without a lock. What changes the tree, or moves a thread, does so with
 * ut_policy_lock: neither happens while a policy comes or goes.
 *
 * Read next: core/cgroup.c.
 */
#include <errno.h>

#include "ut.h"

#define WEIGHT_MAX 10000
#define WEIGHT_USUAL 100

/* @call, while nothing else is changed, with preemption disabled once; -EPERM; -ETIMEDOUT. */
#define alone(call)							\
	({								\
		int err_ = ut_inside(ut_may_block());			\
									\
		if (!err_)						\
			err_ = ut_mutex_lock(&ut_policy_lock);		\
		if (!err_) {						\
			ut_disable();					\
			err_ = (call);					\
			ut_enable();					\
			ut_mutex_unlock(&ut_policy_lock);		\
		}							\
		err_;							\
	})

static int create(ut_cgroup **made, ut_cgroup *parent, const char *name, u32 weight)
{
	if (!made || !name || weight > WEIGHT_MAX)
		return -EINVAL;
	/* Linux has tasks in the innermost groups alone, and in the root. */
	if (parent && parent->level && sl_cgroup_has_tasks(parent))
		return -EBUSY;
	return sl_cgroup_create(parent, name, weight ? weight : WEIGHT_USUAL, made);
}

int ut_cgroup_create(ut_cgroup **made, ut_cgroup *parent, const char *name, uint32_t weight)
{
	return alone(create(made, parent, name, weight));
}

static int set_weight(ut_cgroup *group, u32 weight)
{
	if (!group || !group->level || !weight || weight > WEIGHT_MAX)
		return -EINVAL;
	sl_cgroup_set_weight(group, weight);
	return 0;
}

int ut_cgroup_set_weight(ut_cgroup *group, uint32_t weight)
{
	return alone(set_weight(group, weight));
}

static int set_bandwidth(ut_cgroup *group, u64 period_us, u64 quota_us)
{
	if (!group || !group->level || !period_us || !quota_us)
		return -EINVAL;
	sl_cgroup_set_bandwidth(group, period_us, quota_us, 0);
	return 0;
}

int ut_cgroup_set_bandwidth(ut_cgroup *group, uint64_t period_us, uint64_t quota_us)
{
	return alone(set_bandwidth(group, period_us, quota_us));
}

static int set_cpus(ut_cgroup *group, const uint64_t *cpus, u32 words)
{
	struct cpumask mask = { 0 };

	if (!group || !group->level || !cpus)
		return -EINVAL;
	if (sl_cgroup_has_cgroups(group) || sl_cgroup_has_tasks(group))
		return -EBUSY;
	for (u32 i = 0; i < words; i++) {
		if (i < SCX_CPUS_MAX / 64)
			mask.bits[i] = cpus[i];
		else if (cpus[i])
			return -EINVAL;
	}
	return sl_cgroup_set_cpus(group, &mask);
}

int ut_cgroup_set_cpus(ut_cgroup *group, const uint64_t *cpus, uint32_t words)
{
	return alone(set_cpus(group, cpus, words));
}

/* Return: 0; -EBUSY: there are groups in it. */
static int check(ut_cgroup *group)
{
	return group && group->level && sl_cgroup_has_cgroups(group) ? -EBUSY : 0;
}

/* A thread that is set up, and not yet attached, is in @group. Return: 0; -EBUSY. */
int ut_cgroup_give(struct ut_thread *t, ut_cgroup *group)
{
	int err = check(group);

	return err ? err : sl_task_set_cgroup(&t->core, group);
}

/*
 * Context: preemption disabled once, no lock held; no other move of that thread meanwhile. May
 * switch.
 */
int ut_cgroup_move_now(ut_id id, ut_cgroup *group)
{
	int err = check(group);
	bool is_begun = false;

	/* In a call: no address of anything thread-local is kept. */
	ut_bind(ut_this_cpu()->curr, false);
	/* A change charges a thread that runs. */
	ut_charge(ut_this_cpu(), sl_host_now_ns());
	while (!err) {
		struct ut_thread *t = ut_thread_lock(id);

		if (!t)
			return is_begun ? 0 : -ESRCH;
		if (t->has_ended)
			err = is_begun ? 0 : -ESRCH;
		else
			err = is_begun ? sl_task_finish_move(&t->core) :
					 sl_task_set_cgroup(&t->core, group);
		sl_unlock(&t->lock);
		if (err <= 0)
			break;
		/* Its new group lacks the CPU where it runs, which has been kicked. */
		is_begun = true;
		err = 0;
		ut_interrupt(ut_this_cpu());
		ut_schedule(SL_WHY_RESCHED);
	}
	return err;
}

int ut_cgroup_move(ut_id id, ut_cgroup *group)
{
	return alone(ut_cgroup_move_now(id, group));
}
