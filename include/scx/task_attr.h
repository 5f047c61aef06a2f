/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * task_attr.h - the attributes of a task beyond Linux's weight.
 *
 * Reports 1, 3 and 5 give tasks priorities, tickets and credits; Linux has no
 * place for them. They live in one hash map keyed by pid, which every host
 * fills before the task first runs and updates when the task's program says
 * `set`. A policy reads them with task_attr(); a task that is not in the map
 * has none set, and the policy falls back to p->scx.weight or a default.
 *
 * Read next: policies/lottery.bpf.c, a small user.
 */
#ifndef SCX_TASK_ATTR_H
#define SCX_TASK_ATTR_H

#include <scx/common.bpf.h>
#include <scx/attrs.h>

#ifndef TASK_ATTRS_MAX
#define TASK_ATTRS_MAX 131072
#endif

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TASK_ATTRS_MAX);
	__type(key, s32);
	__type(value, struct task_attr);
} task_attrs SEC(".maps");

/* The attributes of @p, or NULL where none were given. */
static inline struct task_attr *task_attr(struct task_struct *p)
{
	s32 pid = p->pid;

	return bpf_map_lookup_elem(&task_attrs, &pid);
}

static inline bool task_attr_given(const struct task_attr *attr, u32 key)
{
	return attr && (attr->given & (1U << key));
}

/* What @p holds in a proportional share: its tickets or, without any, its weight. */
static inline u64 task_tickets(struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);

	if (task_attr_given(attr, TASK_ATTR_TICKETS) && attr->tickets)
		return attr->tickets;
	return p->scx.weight;
}

#endif
