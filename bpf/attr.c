/* SPDX-License-Identifier: MIT */
/*
 * attr.c - the attributes of a task, given at its start and changed by `set`.
 *
 * Called by hosts. A policy finds the values in its task_attrs map
 * (include/scx/task_attr.h); a policy without that map does not see them. The
 * task keeps them for the policies that come after. The weight is not among
 * them: it is a member of the task.
 *
 * Read next: timer.c.
 */
#include "../core/core.h"

/* Context: tables_lock held. Return: 0, or -E2BIG when the map is full. */
static int publish(struct sl_task *t)
{
	if (!sl_bpf.attr_map || !t->attr.given)
		return 0;
	return (int)sl_map_update(sl_bpf.attr_map, &t->p.pid, &t->attr, BPF_ANY);
}

/* A policy has come, or comes while @t does. Return: as above. */
static int give_kept_attrs(struct sl_task *t)
{
	int err;

	sl_lock(&sl_core.tables_lock);
	err = publish(t);
	sl_unlock(&sl_core.tables_lock);
	return err;
}

/*
 * Give a task the attributes its program declares. Context: after sl_task_setup(),
 * before sl_task_attach(); no lock held. Return: as above.
 */
int sl_task_give_attrs(struct sl_task *t, const struct task_attr *attr)
{
	/* Most often there are none, and the lock is one for all CPUs. */
	if (!attr->given)
		return 0;
	t->attr = *attr;
	return give_kept_attrs(t);
}

/* @key: not the weight, which is not kept there. */
static void set_attr(struct task_attr *attr, u32 key, u64 value)
{
	switch (key) {
	case TASK_ATTR_PRIORITY:
		attr->priority = (s32)value;
		break;
	case TASK_ATTR_TICKETS:
		attr->tickets = (u32)value;
		break;
	case TASK_ATTR_CREDITS:
		attr->credits = (s32)value;
		break;
	case TASK_ATTR_CAP:
		attr->cap_percent = (u32)value;
		break;
	case TASK_ATTR_GROUP:
		attr->group = (u32)value;
		break;
	case TASK_ATTR_DEADLINE:
		attr->deadline_ns = value;
		break;
	case TASK_ATTR_BURST:
		attr->burst_ns = value;
		break;
	default:
		SL_ASSERT(!"an attribute that is not kept");
	}
	attr->given |= 1U << key;
}

/**
 * sl_task_set_attr - change one attribute of a task
 * @t: set up; if it is attached, the policy hears of it
 * @key: enum task_attr_key
 * @value: new value, a signed member as two's complement
 *
 * A runnable task is queued anew (S17), after the policy can read the value. A
 * policy without the map cannot, and is not called.
 *
 * Context: no lock held.
 * Return: 0; -EINVAL for an unknown key or an impossible weight; -E2BIG.
 */
int sl_task_set_attr(struct sl_task *t, u32 key, u64 value)
{
	const struct task_attr *old;
	bool is_read;
	int err;

	if (key >= NR_TASK_ATTRS || (key == TASK_ATTR_WEIGHT && (value < 1 || value > 10000)))
		return -EINVAL;
	if (t->is_attached)
		sl_host_record(SL_RECORD_ATTR, t->p.pid, READ_ONCE(t->cpu), key, value);
	if (key == TASK_ATTR_WEIGHT) {
		sl_task_set_weight(t, (u32)value);
		return 0;
	}
	if (!t->is_attached) {
		set_attr(&t->attr, key, value);
		return 0;
	}
	sl_lock(&sl_core.tables_lock);
	is_read = sl_bpf.attr_map;
	/* The policy may have written there, too. */
	old = is_read ? sl_map_lookup(sl_bpf.attr_map, &t->p.pid) : NULL;
	if (old)
		t->attr = *old;
	set_attr(&t->attr, key, value);
	err = publish(t);
	sl_unlock(&sl_core.tables_lock);
	if (is_read && !err)
		sl_task_set_weight(t, 0);
	return err;
}
