/* SPDX-License-Identifier: MIT */
/*
 * load.c - the policy of this process, and the knobs of one run.
 *
 * The policy is loaded by the parent, its knobs are set in the forked child: the
 * parent's copy stays pristine for the next run.
 *
 * Read next: hosts/common/policy_file.c, how; worker.c.
 */
#include <stdio.h>

#include "policy_file.h"
#include "sim.h"

static struct sl_policy_file file;

const struct sl_policy *sim_policy(void)
{
	return file.policy;
}

/* Return: 0, or -errno with @why filled in. */
int sim_policy_load(const char *path, char *why, u32 why_bytes)
{
	return sl_policy_file_open(&file, path, why, why_bytes);
}

const struct sl_policy_file *sim_policy_file(void)
{
	return &file;
}

/* @assignment: NAME=VALUE. Return: 0, or -errno with @why filled in. */
int sim_policy_set(const char *assignment, char *why, u32 why_bytes)
{
	u32 used = (u32)snprintf(why, why_bytes, "--set ");

	return sl_policy_file_set(&file, assignment, why + used,
				  why_bytes - used);
}
