/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * level.h - levels, 0 the highest: from a priority or, without one, from the weight.
 *
 * Read next: scx/policy/rt.h, a small user.
 */
#ifndef SCX_LEVEL_H
#define SCX_LEVEL_H

#include <scx/common.bpf.h>
#include <scx/task_attr.h>

#define NICE_0_WEIGHT 100U
#define DOUBLINGS_MAX 7		/* a weight is 10,000 at most */

/*
 * The level of a task without priority: @default_level at nice 0, and one level
 * higher for each factor of two in weight. It may be below 0 or beyond the last.
 */
static inline s64 level_of_weight(u32 weight, u32 default_level)
{
	s64 level = default_level;
	u32 i;

	for (i = 0; i < DOUBLINGS_MAX && weight >= 2 * NICE_0_WEIGHT; i++) {
		weight /= 2;
		level--;
	}
	for (i = 0; i < DOUBLINGS_MAX && weight <= NICE_0_WEIGHT / 2; i++) {
		weight *= 2;
		level++;
	}
	return level;
}

static inline u32 clamp_level(s64 level, u32 nr_levels)
{
	if (level < 0)
		return 0;
	return level < nr_levels ? (u32)level : nr_levels - 1;
}

/* The task's priority, or its level by weight. @attr: its attributes, or NULL. */
static inline u32 task_level(const struct task_struct *p, const struct task_attr *attr,
			     u32 default_level, u32 nr_levels)
{
	if (task_attr_given(attr, TASK_ATTR_PRIORITY))
		return clamp_level(attr->priority, nr_levels);
	return clamp_level(level_of_weight(p->scx.weight, default_level), nr_levels);
}

#endif
