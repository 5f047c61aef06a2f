/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * eevdf_tree.h - with groups=tree: what is chosen, from the root down.
 *
 * In each queue, of the tasks and groups that are eligible, the one with the earliest
 * deadline; of a group again, until it is a task. Where nothing is eligible that this
 * CPU could run, the earliest deadline has to do.
 *
 * A task of a group that runs on another CPU is taken to run for a slice more, or all
 * CPUs would take tasks of the same group at once.
 *
 * Included after eevdf_lag.h. Read next: policies/eevdf.bpf.c.
 */

/* What is first in a queue: a group, the queue itself for a task of it, TREE_RIVAL or TREE_EMPTY. */
struct tree_choice {
	u64 deadline;
	u32 what;
	bool is_eligible;
};

static __always_inline void consider(struct tree_choice *c, u32 what, u64 deadline, bool is_eligible)
{
	bool is_better = c->what == TREE_EMPTY || time_before(deadline, c->deadline);

	if (c->what != TREE_EMPTY && c->is_eligible != is_eligible)
		is_better = is_eligible;
	if (!is_better)
		return;
	c->what = what;
	c->deadline = deadline;
	c->is_eligible = is_eligible;
}

static void consider_tasks(struct tree_choice *c, u32 nr, s32 cpu, u64 mean)
{
	struct task_struct *p;

	if (!scx_bpf_dsq_nr_queued(nr))
		return;
	bpf_for_each(scx_dsq, p, nr, 0) {
		struct task_ctx *tc = task_ctx(p);

		if (!tc || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		consider(c, nr, p->scx.dsq_vtime, is_eligible(tc, mean));
		if (c->what == nr && c->is_eligible)
			break;
	}
}

/* Return: whether group @nr is eligible, when its tasks that run now, but for the @rival, have had a slice more. */
static bool is_group_eligible(u32 nr, u64 mean, u64 now_ns, bool has_rival)
{
	const struct group *g = ARRAY_ELEM_PTR(groups_of, nr, GROUPS_MAX);
	const struct mean *m = ARRAY_ELEM_PTR(means, nr, GROUPS_MAX);
	u64 v, counted, nr_running;
	s64 ahead_ns;

	if (!g || !m)
		return false;
	bpf_spin_lock(&eevdf_lock);
	v = g->vtime;
	counted = g->counted;
	nr_running = m->nr_running;
	ahead_ns = (s64)(nr_running * now_ns - m->since_ns);
	bpf_spin_unlock(&eevdf_lock);
	if (!counted)
		return false;
	if (has_rival && nr_running)
		nr_running--;
	if (ahead_ns < 0)
		ahead_ns = 0;
	v += vtime_of((u64)ahead_ns + nr_running * slice_ns, counted);
	return time_before_eq(v, mean + vtime_of(LAG_SLACK_NS, counted));
}

static void find_first_in(struct tree_choice *c, u32 nr, s32 cpu, u64 ready, u64 rivals, u64 now_ns)
{
	u64 mean = mean_of(nr, now_ns);
	s32 child;

	c->what = TREE_EMPTY;
	c->is_eligible = false;
	c->deadline = 0;
	consider_tasks(c, nr, cpu, mean);
	bpf_for(child, 1, GROUPS_MAX) {
		const struct group *g = ARRAY_ELEM_PTR(groups_of, child, GROUPS_MAX);

		if (!g || g->parent != nr || !is_on_path(child, ready))
			continue;
		consider(c, child, g->deadline,
			 is_group_eligible(child, mean, now_ns, is_on_path(child, rivals)));
	}
}

/* Return: the queue from which a task is to run on @cpu, TREE_RIVAL or TREE_EMPTY. @rival: NULL: there is none. */
static u32 choose_queue(s32 cpu, const struct task_ctx *rival)
{
	u64 rivals = rival ? path_of(rival->group.in) : 0;
	u64 ready = ready_groups(cpu) | rivals;
	u64 now_ns = scx_bpf_now();
	struct tree_choice c;
	u32 nr = 0;
	s32 level;

	bpf_for(level, 0, GROUP_LEVELS_MAX) {
		find_first_in(&c, nr, cpu, ready, rivals, now_ns);
		if (rival && rival->group.in == nr) {
			bool is_its_turn = is_eligible(rival, mean_of(nr, now_ns));

			if (c.what == TREE_EMPTY)
				return TREE_RIVAL;
			if (is_its_turn &&
			    (!c.is_eligible || time_before(rival->deadline, c.deadline)))
				return TREE_RIVAL;
		}
		if (c.what == nr || c.what >= GROUPS_MAX)
			return c.what;
		nr = c.what;
	}
	return TREE_EMPTY;
}

/* What stands for a task in the first group that it has in common with another. */
struct tree_entity {
	u64 v, deadline, weight;
	u32 nr; /* that group */
};

static void climb(struct tree_entity *e, u64 path)
{
	u32 i;

	for (i = 0; !is_on_path(e->nr, path) && i < GROUP_LEVELS_MAX; i++) {
		const struct group *g = ARRAY_ELEM_PTR(groups_of, e->nr, GROUPS_MAX);

		if (!g)
			return;
		e->v = g->vtime;
		e->deadline = g->deadline;
		e->weight = g->counted ? g->counted : 1;
		e->nr = g->parent;
	}
}

static bool is_entity_eligible(const struct tree_entity *e, u64 mean)
{
	return time_before_eq(e->v, mean + vtime_of(LAG_SLACK_NS, e->weight));
}
