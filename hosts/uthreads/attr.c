/* SPDX-License-Identifier: MIT */
/*
 * attr.c - the attributes of a thread: checked, given, changed, told.
 *
 * What was given lies with the thread, so that it can be asked for, and in the
 * policy's map (bpf/attr.c).
 *
 * Read next: bpf/attr.c.
 */
#include <errno.h>
#include <string.h>

#include "ut.h"

#define GIVES_ALL 0xffU

/* The value as the core wants it, a signed one as two's complement. */
static u64 value_of(const struct ut_attr *attr, u32 gives)
{
	switch (gives) {
	case UT_GIVES_PRIORITY:
		return (u64)(s64)attr->priority;
	case UT_GIVES_TICKETS:
		return attr->tickets;
	case UT_GIVES_CREDITS:
		return (u64)(s64)attr->credits;
	case UT_GIVES_CAP:
		return attr->cap_percent;
	case UT_GIVES_GROUP:
		return attr->group;
	case UT_GIVES_WEIGHT:
		return attr->weight;
	case UT_GIVES_DEADLINE:
		return attr->deadline_ns;
	default:
		return attr->burst_ns;
	}
}

static u32 key_of(u32 gives)
{
	switch (gives) {
	case UT_GIVES_PRIORITY:
		return TASK_ATTR_PRIORITY;
	case UT_GIVES_TICKETS:
		return TASK_ATTR_TICKETS;
	case UT_GIVES_CREDITS:
		return TASK_ATTR_CREDITS;
	case UT_GIVES_CAP:
		return TASK_ATTR_CAP;
	case UT_GIVES_GROUP:
		return TASK_ATTR_GROUP;
	case UT_GIVES_WEIGHT:
		return TASK_ATTR_WEIGHT;
	case UT_GIVES_DEADLINE:
		return TASK_ATTR_DEADLINE;
	default:
		return TASK_ATTR_BURST;
	}
}

static bool has_cpu(const struct ut_attr *attr, u32 cpu)
{
	return cpu / 64 < attr->affinity_words &&
	       attr->affinity[cpu / 64] >> (cpu % 64) & 1;
}

/* Return: 0; -EINVAL. */
int ut_attr_check(const struct ut_attr *attr)
{
	bool has_any = !attr->affinity;

	if (attr->attr_bytes != sizeof(*attr) || (attr->given & ~GIVES_ALL))
		return -EINVAL;
	if ((attr->given & UT_GIVES_WEIGHT) &&
	    (attr->weight < 1 || attr->weight > 10000))
		return -EINVAL;
	if ((attr->given & UT_GIVES_TICKETS) && !attr->tickets)
		return -EINVAL;
	if (attr->stack_bytes && (attr->stack_bytes < ut_stack_bytes_min() ||
				  attr->stack_bytes > 1ULL << 40))
		return -EINVAL;
	for (u32 cpu = 0; cpu < ut.nr_cpus && !has_any; cpu++)
		has_any = has_cpu(attr, cpu);
	return has_any ? 0 : -EINVAL;
}

/* Context: @t's lock is held, or it is not attached yet. */
static const struct cpumask *affinity_of(const struct ut_thread *t)
{
	return t->free_mask ? t->free_mask : READ_ONCE(t->core.p.cpus_ptr);
}

/*
 * Bind @t, which runs here, to this CPU, or to no CPU any more. Its affinity is this
 * CPU meanwhile, as Linux narrows that of a task which must not migrate; but the policy
 * queues it as any other one, since it may be bound for long, where Linux puts it
 * before the others (S20). Context: preemption disabled, no lock held.
 */
void ut_bind(struct ut_thread *t, bool is_bound)
{
	const struct cpumask *mask = t->free_mask;
	struct ut_cpu *cpu = ut_this_cpu();

	if (is_bound == !!mask)
		return;
	/* Another CPU may look: ut_take_over(). */
	WRITE_ONCE(cpu->nr_bound, cpu->nr_bound + (is_bound ? 1U : -1U));
	sl_lock(&t->lock);
	t->free_mask = is_bound ? READ_ONCE(t->core.p.cpus_ptr) : NULL;
	sl_task_set_affinity(&t->core, is_bound ? &cpu->only : mask);
	sl_unlock(&t->lock);
}

/* Context: @t's lock is held. */
static void set_affinity(struct ut_thread *t, const struct cpumask *mask)
{
	if (t->free_mask)
		t->free_mask = mask;
	else
		sl_task_set_affinity(&t->core, mask);
}

/*
 * The mask stays with the place: a policy may be looking at the last one. A
 * thread that lives needs another one, since it may be in use.
 */
static struct cpumask *make_mask(struct ut_thread *t, const struct ut_attr *attr)
{
	struct cpumask *mask = t->core.own_mask;

	if (!mask)
		mask = sl_host_alloc(2 * sizeof(*mask));
	if (!mask)
		return NULL;
	t->core.own_mask = mask;
	if (affinity_of(t) == mask)
		mask++;
	for (u32 w = 0; w < (ut.nr_cpus + 63) / 64; w++) {
		unsigned long word = 0;

		for (u32 i = 0; i < 64 && w * 64 + i < ut.nr_cpus; i++)
			word |= (unsigned long)has_cpu(attr, w * 64 + i) << i;
		WRITE_ONCE(mask->bits[w], word);
	}
	return mask;
}

static void remember(struct ut_thread *t, const struct ut_attr *attr)
{
	struct ut_attr *own = &t->attr;
	u32 given = own->given | attr->given;

	if (attr->affinity)
		own->affinity_words = (ut.nr_cpus + 63) / 64;
	if (attr->given & UT_GIVES_TICKETS)
		own->tickets = attr->tickets;
	if (attr->given & UT_GIVES_CREDITS)
		own->credits = attr->credits;
	if (attr->given & UT_GIVES_CAP)
		own->cap_percent = attr->cap_percent;
	if (attr->given & UT_GIVES_GROUP)
		own->group = attr->group;
	if (attr->given & UT_GIVES_WEIGHT)
		own->weight = attr->weight;
	if (attr->given & UT_GIVES_DEADLINE)
		own->deadline_ns = attr->deadline_ns;
	if (attr->given & UT_GIVES_BURST)
		own->burst_ns = attr->burst_ns;
	own->given = given;
}

/* To a thread that is set up and not yet attached. Return: 0; -ENOMEM; -E2BIG. */
int ut_attr_give(struct ut_thread *t, const struct ut_attr *attr)
{
	struct task_attr given = {
		.priority = attr->priority,
		.tickets = attr->tickets,
		.credits = attr->credits,
		.cap_percent = attr->cap_percent,
		.group = attr->group,
		.deadline_ns = attr->deadline_ns,
		.burst_ns = attr->burst_ns,
	};
	struct cpumask *mask;

	for (u32 gives = 1; gives <= UT_GIVES_BURST; gives <<= 1) {
		if ((attr->given & gives) && gives != UT_GIVES_WEIGHT)
			given.given |= 1U << key_of(gives);
	}
	t->attr.priority = t->priority = attr->priority;
	remember(t, attr);
	if (attr->given & UT_GIVES_WEIGHT)
		sl_task_set_weight(&t->core, attr->weight);
	if (attr->affinity) {
		mask = make_mask(t, attr);
		if (!mask)
			return -ENOMEM;
		sl_task_set_affinity(&t->core, mask);
	}
	return sl_task_give_attrs(&t->core, &given);
}

static int change(struct ut_thread *t, const struct ut_attr *attr)
{
	struct cpumask *mask;
	int err = 0;

	if (attr->given & UT_GIVES_PRIORITY)
		err = ut_inherit_give(t, attr->priority);
	remember(t, attr);
	for (u32 gives = 1; gives <= UT_GIVES_BURST && !err; gives <<= 1) {
		if ((attr->given & gives) && gives != UT_GIVES_PRIORITY)
			err = sl_task_set_attr(&t->core, key_of(gives),
					       value_of(attr, gives));
	}
	if (err || !attr->affinity)
		return err;
	mask = make_mask(t, attr);
	if (!mask)
		return -ENOMEM;
	set_affinity(t, mask);
	return 0;
}

int ut_setattr(ut_id id, const struct ut_attr *attr)
{
	struct ut_thread *t;
	int err;

	if (!ut_this_cpu())
		return -EPERM;
	if (!attr || ut_attr_check(attr))
		return -EINVAL;
	ut_disable();
	t = ut_thread_lock(id);
	/* A change charges a thread that runs. */
	if (t && t == ut_this_cpu()->curr)
		ut_charge(ut_this_cpu(), sl_host_now_ns());
	err = t && !t->has_ended ? change(t, attr) : -ESRCH;
	if (t)
		sl_unlock(&t->lock);
	ut_enable();
	return err;
}

int ut_getattr(ut_id id, struct ut_attr *attr)
{
	struct ut_thread *t;

	if (!ut_this_cpu())
		return -EPERM;
	if (!attr)
		return -EINVAL;
	ut_disable();
	t = ut_thread_lock(id);
	if (t) {
		*attr = t->attr;
		attr->name = t->core.p.comm;
		attr->stack_bytes = t->stack.bytes;
		attr->is_detached = !t->is_joinable && !t->joiner;
		if (t->attr.affinity_words)
			attr->affinity = affinity_of(t)->bits;
		sl_unlock(&t->lock);
	}
	ut_enable();
	return t ? 0 : -ESRCH;
}

/* For inherit.c: what is in effect, not what was given. Queued anew (S17). */
void ut_attr_set_priority(struct ut_thread *t, s32 priority)
{
	t->priority = priority;
	sl_task_set_attr(&t->core, TASK_ATTR_PRIORITY, (u64)(s64)priority);
}

/*
 * CPU time of the thread that runs here. What ran for @charge_from_ns is charged first,
 * so that time the kernel gave to others is found out; 0: whatever ran, and nothing
 * that others took until now is taken off it later. Context: preemption disabled.
 */
u64 ut_own_cpu_time_ns(u64 charge_from_ns)
{
	struct ut_cpu *cpu = ut_this_cpu();
	struct sl_task *t = &cpu->curr->core;
	u64 now_ns = sl_host_now_ns();

	if (now_ns - t->exec_start_ns >= charge_from_ns)
		ut_charge(cpu, now_ns);
	return t->p.se.sum_exec_runtime + now_ns - t->exec_start_ns;
}

/* Context: preemption disabled, @t's lock is held. */
void ut_stats_of(const struct ut_thread *t, struct ut_stats *stats)
{
	const struct task_struct *p = &t->core.p;

	*stats = (struct ut_stats){
		.cpu_time_ns = READ_ONCE(p->se.sum_exec_runtime),
		.wait_ns = READ_ONCE(t->core.wait_ns),
		.wait_ns_max = READ_ONCE(t->core.wait_ns_max),
		.voluntary_switches = READ_ONCE(p->nvcsw),
		.involuntary_switches = READ_ONCE(p->nivcsw),
		.migrations = READ_ONCE(t->core.nr_migrations),
	};
	memcpy(stats->name, p->comm, sizeof(stats->name));
	if (t == ut_this_cpu()->curr)
		stats->cpu_time_ns = ut_own_cpu_time_ns(UT_STOLEN_FROM_NS);
}

int ut_stats(ut_id id, struct ut_stats *stats)
{
	struct ut_thread *t;

	if (!ut_this_cpu())
		return -EPERM;
	if (!stats)
		return -EINVAL;
	ut_disable();
	t = ut_thread_lock(id);
	if (t) {
		ut_stats_of(t, stats);
		sl_unlock(&t->lock);
	}
	ut_enable();
	return t ? 0 : -ESRCH;
}

uint64_t ut_cpu_time_ns(ut_id id)
{
	struct ut_stats stats;

	return ut_stats(id, &stats) ? 0 : stats.cpu_time_ns;
}
