/* SPDX-License-Identifier: MIT */
/*
 * groups.h - the cgroups of a workload program, where the core has them.
 *
 * Read next: core/cgroup.c.
 */
#ifndef COMMON_GROUPS_H
#define COMMON_GROUPS_H

#include <schedlab/change.h>

/**
 * sl_groups_create - make a program's groups, before any of its tasks
 * @program: checked
 * @why: what is wrong
 * @why_bytes: size of @why
 *
 * Before a policy is loaded, so that cgroup_init is told of quotas. Context: as sl_cgroup_create().
 * Return: groups by object, NULL where it is none, for as long as the process lives; or NULL.
 */
struct cgroup **sl_groups_create(const void *program, char *why, u32 why_bytes);

#endif
