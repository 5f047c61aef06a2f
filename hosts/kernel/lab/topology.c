/* SPDX-License-Identifier: MIT */
/*
 * topology.c - QEMU's harts are all alike; a policy may be shown others by the boot
 * arguments smt=, llc= and node=, to see what it makes of them.
 *
 * Called by kernel/sched.c through lab.h. Read next: core/idle.c, which looks at
 * it.
 */
#include <schedlab/machine.h>

#include "bootargs.h"
#include "proc.h"

/* The boot argument @key: how many harts in a row share it. NULL: not given. */
static const u16 *groups_of(const char *key, u16 *groups)
{
	u64 nr_each = bootarg_u64(key, 0);

	if (!nr_each)
		return NULL;
	for (u32 i = 0; i < nr_cpus; i++)
		groups[i] = (u16)(i / nr_each);
	return groups;
}

void lab_topology(struct sl_config *config)
{
	static u16 smt[NCPU], llc[NCPU], node[NCPU];

	config->smt_of_cpu = groups_of("smt", smt);
	config->llc_of_cpu = groups_of("llc", llc);
	config->node_of_cpu = groups_of("node", node);
}
