/* SPDX-License-Identifier: MIT */
/*
 * groups.c - makes the cgroups of a workload program, each after the one that it is in.
 *
 * Read next: hosts/linux/guest/groups.c, the same with Linux's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "groups.h"
#include "program.h"

static int set_cpus(struct cgroup *group, const void *program, u64 where)
{
	struct cpumask mask = { 0 };
	u32 nr_words = (u32)where;

	if (nr_words > sizeof(mask) / sizeof(u64))
		nr_words = sizeof(mask) / sizeof(u64);
	memcpy(&mask, sl_program_values(program) + (where >> 32), nr_words * sizeof(u64));
	return sl_cgroup_set_cpus(group, &mask);
}

static int create(const void *program, u32 object, struct cgroup **groups)
{
	const u64 *group = sl_program_group(program, object);
	u64 parent = group[SL_GROUP_PARENT];
	u64 cpus = sl_program_group_cpus(program, object);
	int err = sl_cgroup_create(parent ? groups[parent - 1] : NULL,
				   sl_program_string(program,
						     sl_program_objects(program)[object].name),
				   (u32)group[SL_GROUP_WEIGHT], &groups[object]);

	if (err)
		return err;
	sl_cgroup_set_bandwidth(groups[object], group[SL_GROUP_PERIOD_US], group[SL_GROUP_QUOTA_US],
				0);
	return cpus ? set_cpus(groups[object], program, cpus) : 0;
}

struct cgroup **sl_groups_create(const void *program, char *why, u32 why_bytes)
{
	u32 nr = sl_program_header(program)->nr_objects;
	struct cgroup **groups = calloc(nr + 1ULL, sizeof(*groups));

	if (!groups)
		snprintf(why, why_bytes, "not enough memory for groups");
	for (u32 i = 0; groups && i < nr; i++) {
		const struct sl_program_object *o = &sl_program_objects(program)[i];
		int err = o->kind == SL_OBJECT_GROUP ? create(program, i, groups) : 0;

		if (!err)
			continue;
		snprintf(why, why_bytes, "group '%s' cannot be made: %s",
			 sl_program_string(program, o->name),
			 groups[i] ? "it has CPUs that this run lacks" :
				     "there are too many, or they are nested too deeply");
		free(groups);
		groups = NULL;
	}
	return groups;
}
