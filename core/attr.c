/* SPDX-License-Identifier: MIT */
/*
 * attr.c - the attributes of a task, given at its start and changed by `set`.
 *
 * Called by hosts. The values live in the policy's task_attrs map
 * (include/scx/task_attr.h); a policy without that map does not see them. The
 * weight is not among them: it is the task's own.
 *
 * Read next: change.c, for the weight.
 */
#include "core.h"

/*
 * Give a task the attributes its program declares. Context: after
 * sl_policy_enable(), before sl_task_attach(); no lock held.
 * Return: 0, or -E2BIG when the map is full.
 */
int sl_task_give_attrs(struct sl_task *t, const struct task_attr *attr)
{
	if (!sl_core.attr_map || !attr->given)
		return 0;
	return (int)sl_map_update(sl_core.attr_map, &t->p.pid, attr, BPF_ANY);
}

static int change(struct task_attr *attr, u32 key, u64 value)
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
		return -22;
	}
	attr->given |= 1U << key;
	return 0;
}

/**
 * sl_task_set_attr - change one attribute of a task
 * @t: attached
 * @key: enum task_attr_key
 * @value: new value, a signed member as two's complement
 *
 * Context: no lock held.
 * Return: 0; -EINVAL for an unknown key or an impossible weight; -E2BIG.
 */
int sl_task_set_attr(struct sl_task *t, u32 key, u64 value)
{
	struct task_attr attr = { 0 };
	const struct task_attr *old;
	int err;

	if (key == TASK_ATTR_WEIGHT) {
		if (value < 1 || value > 10000)
			return -22;
	} else {
		if (sl_core.attr_map) {
			old = sl_map_lookup(sl_core.attr_map, &t->p.pid);
			if (old)
				attr = *old;
		}
		err = change(&attr, key, value);
		if (err)
			return err;
	}
	sl_host_record(SL_RECORD_ATTR, t->p.pid, sl_peek(&t->cpu), key, value);
	if (key == TASK_ATTR_WEIGHT)
		sl_task_set_weight(t, (u32)value);
	else if (sl_core.attr_map)
		return (int)sl_map_update(sl_core.attr_map, &t->p.pid, &attr,
					  BPF_ANY);
	return 0;
}
