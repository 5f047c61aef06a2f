/* SPDX-License-Identifier: MIT */
/*
 * tree.c - which CPU has the earliest event: a tournament over CPUs.
 *
 * Each CPU has one key; the winner of each pair moves up. A CPU's key changes
 * in place, in O(log CPUs), so that a preemption cannot leave the end of a
 * burst behind. Of equal keys the lower CPU wins.
 *
 *	          [1] winner of all
 *	     [2]            [3]
 *	  [4]   [5]      [6]   [7]      leaves: CPUs 0..3
 *
 * Read next: cpu.c.
 */
#include <stdlib.h>

#include "sim.h"

struct node {
	u64 key;
	u32 cpu;
};

static struct node *nodes;
static u32 first_leaf;

int sim_tree_init(u32 nr_cpus)
{
	first_leaf = 1;
	while (first_leaf < nr_cpus)
		first_leaf *= 2;
	nodes = calloc(2 * first_leaf, sizeof(*nodes));
	if (!nodes)
		return -12;
	for (u32 i = 0; i < first_leaf; i++)
		nodes[first_leaf + i] = (struct node){ SIM_NEVER, i };
	for (u32 i = first_leaf - 1; i > 0; i--)
		nodes[i] = nodes[2 * i];
	return 0;
}

void sim_tree_update(u32 cpu, u64 key)
{
	u32 at = first_leaf + cpu;

	if (nodes[at].key == key)
		return;
	nodes[at].key = key;
	for (at /= 2; at > 0; at /= 2) {
		const struct node *left = &nodes[2 * at];
		const struct node *right = left + 1;

		nodes[at] = right->key < left->key ? *right : *left;
	}
}

u64 sim_tree_first_key(void)
{
	return nodes[1].key;
}

u32 sim_tree_first_cpu(void)
{
	return nodes[1].cpu;
}
