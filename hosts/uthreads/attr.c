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
#include <stddef.h>
#include <string.h>

#include "ut.h"

/* By its bit in `given`: the core's key of a value, and where it lies. */
#define FIELD(key, name) \
	{ TASK_ATTR_##key, offsetof(struct ut_attr, name), sizeof(((struct ut_attr *)0)->name) }

static const struct field {
	u8 key, offset, bytes;
} fields[] = {
	FIELD(PRIORITY, priority),    FIELD(TICKETS, tickets), FIELD(CREDITS, credits),
	FIELD(CAP, cap_percent),      FIELD(GROUP, group),     FIELD(WEIGHT, weight),
	FIELD(DEADLINE, deadline_ns), FIELD(BURST, burst_ns),
};

#define NR_FIELDS (sizeof(fields) / sizeof(fields[0]))

/* The value as the core wants it, a signed one as two's complement; bytes are little-endian. */
static u64 value_of(const struct ut_attr *attr, const struct field *f)
{
	u64 value = 0;

	memcpy(&value, (const char *)attr + f->offset, f->bytes);
	return f->key == TASK_ATTR_PRIORITY || f->key == TASK_ATTR_CREDITS ? (u64)(s64)(s32)value :
									     value;
}

static bool has_cpu(const struct ut_attr *attr, u32 cpu)
{
	return cpu / 64 < attr->affinity_words && attr->affinity[cpu / 64] >> (cpu % 64) & 1;
}

/* Return: 0; -EINVAL. */
int ut_attr_check(const struct ut_attr *attr)
{
	bool has_any = !attr->affinity;

	if (attr->attr_bytes != sizeof(*attr) || attr->given >> NR_FIELDS)
		return -EINVAL;
	if ((attr->given & UT_GIVES_WEIGHT) && (attr->weight < 1 || attr->weight > 10000))
		return -EINVAL;
	if ((attr->given & UT_GIVES_TICKETS) && !attr->tickets)
		return -EINVAL;
	if (attr->stack_bytes &&
	    (attr->stack_bytes < ut_stack_bytes_min() || attr->stack_bytes > 1ULL << 40))
		return -EINVAL;
	for (u32 cpu = 0; cpu < ut.nr_cpus && !has_any; cpu++)
		has_any = has_cpu(attr, cpu);
	return has_any ? 0 : -EINVAL;
}

/*
 * Bind @t, which runs here, to this CPU, or to no CPU any more. Its affinity is this
 * CPU meanwhile, as Linux narrows that of a task which must not migrate; but the policy
 * queues it as any other one, since it may be bound for long, where Linux puts it
 * before the others (S20). Context: preemption disabled, no lock held.
 */
void ut_bind(struct ut_thread *t, bool is_bound)
{
	struct ut_cpu *cpu = ut_this_cpu();

	if (is_bound == t->core.is_bound)
		return;
	/* Another CPU may look: ut_take_over(). */
	WRITE_ONCE(cpu->nr_bound, cpu->nr_bound + (is_bound ? 1U : -1U));
	sl_lock(&t->lock);
	sl_task_bind(&t->core, is_bound ? &cpu->only : NULL);
	sl_unlock(&t->lock);
}

/* Return: 0; -ENOMEM; -EINVAL: the thread's cgroup has none of the CPUs. */
static int give_affinity(struct ut_thread *t, const struct ut_attr *attr)
{
	struct cpumask mask = { 0 };

	for (u32 i = 0; i < ut.nr_cpus; i++)
		mask.bits[i / 64] |= (unsigned long)has_cpu(attr, i) << (i % 64);
	return sl_task_set_affinity(&t->core, &mask);
}

/* What was given, but for the priority, which inherit.c keeps, and the affinity, which the core does. */
static void remember(struct ut_thread *t, const struct ut_attr *attr)
{
	for (u32 i = 1; i < NR_FIELDS; i++) {
		if (attr->given & 1U << i)
			memcpy((char *)&t->attr + fields[i].offset,
			       (const char *)attr + fields[i].offset, fields[i].bytes);
	}
	t->attr.given |= attr->given;
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

	for (u32 i = 0; i < NR_FIELDS; i++) {
		if ((attr->given & 1U << i) && fields[i].key != TASK_ATTR_WEIGHT)
			given.given |= 1U << fields[i].key;
	}
	t->attr.priority = t->priority = attr->priority;
	remember(t, attr);
	if (attr->given & UT_GIVES_WEIGHT)
		sl_task_set_weight(&t->core, attr->weight);
	/* Not -EINVAL: it has no cgroup yet, whose CPUs it has if they are others. */
	if (attr->affinity && give_affinity(t, attr) == -ENOMEM)
		return -ENOMEM;
	return sl_task_give_attrs(&t->core, &given);
}

static int change(struct ut_thread *t, const struct ut_attr *attr)
{
	int err = 0;

	if (attr->given & UT_GIVES_PRIORITY)
		err = ut_inherit_give(t, attr->priority);
	remember(t, attr);
	for (u32 i = 1; i < NR_FIELDS && !err; i++) {
		if (attr->given & 1U << i)
			err = sl_task_set_attr(&t->core, fields[i].key, value_of(attr, &fields[i]));
	}
	return err || !attr->affinity ? err : give_affinity(t, attr);
}

static int set_attr(ut_id id, const struct ut_attr *attr)
{
	struct ut_thread *t;
	int err;

	if (!attr || ut_attr_check(attr))
		return -EINVAL;
	t = ut_thread_lock(id);
	if (!t)
		return -ESRCH;
	/* A change charges a thread that runs. */
	if (t == ut_this_cpu()->curr)
		ut_charge(ut_this_cpu(), sl_host_now_ns());
	err = t->has_ended ? -ESRCH : change(t, attr);
	sl_unlock(&t->lock);
	return err;
}

int ut_setattr(ut_id id, const struct ut_attr *attr)
{
	return ut_inside(set_attr(id, attr));
}

static int get_attr(ut_id id, struct ut_attr *attr)
{
	struct ut_thread *t = ut_thread_lock(id);

	if (!t)
		return -ESRCH;
	*attr = t->attr;
	attr->name = t->core.p.comm;
	attr->stack_bytes = t->stack.bytes;
	attr->is_detached = !t->is_joinable && !t->joiner;
	if (t->core.user_mask) {
		attr->affinity = t->core.user_mask->bits;
		attr->affinity_words = (ut.nr_cpus + 63) / 64;
	}
	attr->cgroup = t->core.p.cgroups->dfl_cgrp;
	sl_unlock(&t->lock);
	return 0;
}

int ut_getattr(ut_id id, struct ut_attr *attr)
{
	return ut_inside(attr ? get_attr(id, attr) : -EINVAL);
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

static int get_stats(ut_id id, struct ut_stats *stats)
{
	struct ut_thread *t = ut_thread_lock(id);

	if (!t)
		return -ESRCH;
	ut_stats_of(t, stats);
	sl_unlock(&t->lock);
	return 0;
}

int ut_stats(ut_id id, struct ut_stats *stats)
{
	return ut_inside(stats ? get_stats(id, stats) : -EINVAL);
}

uint64_t ut_cpu_time_ns(ut_id id)
{
	struct ut_stats stats;

	return ut_stats(id, &stats) ? 0 : stats.cpu_time_ns;
}
