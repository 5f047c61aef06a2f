/* SPDX-License-Identifier: MIT */
/*
 * tree.c - which CPU has the earliest event: a tournament over CPUs.
 *
 * Each CPU has one key; the first of four moves up. A CPU's key changes in place,
 * in O(log CPUs), so that a preemption cannot leave the end of a burst behind. Of
 * equal keys the lower CPU wins.
 *
 *	                 [0] first of all
 *	  [1]         [2]         [3]         [4]
 *	  0 1 2 3     4 5 6 7     8 9 ...             CPUs
 *
 * Read next: cpu.c.
 */
#include <stdlib.h>

#include "sim.h"

u64 *sim_tree_keys;
u32 *sim_tree;
static u32 first_leaf;

static u32 earlier(u32 a, u32 b)
{
	return sim_tree_keys[b] < sim_tree_keys[a] ? b : a;
}

static void play(u32 at)
{
	const u32 *four = &sim_tree[4 * at + 1];

	sim_tree[at] = earlier(earlier(four[0], four[1]), earlier(four[2], four[3]));
}

int sim_tree_init(u32 nr_cpus)
{
	u32 nr_leaves = 1;

	/* The nodes above so many leaves: (leaves - 1) / 3. */
	while (nr_leaves < nr_cpus)
		nr_leaves *= 4;
	first_leaf = (nr_leaves - 1) / 3;
	sim_tree_keys = calloc(nr_leaves, sizeof(*sim_tree_keys));
	sim_tree = calloc(first_leaf + nr_leaves, sizeof(*sim_tree));
	if (!sim_tree_keys || !sim_tree)
		return -12;
	for (u32 i = 0; i < nr_leaves; i++) {
		sim_tree_keys[i] = SIM_NEVER;
		sim_tree[first_leaf + i] = i;
	}
	for (u32 i = first_leaf; i > 0; i--)
		play(i - 1);
	return 0;
}

void sim_tree_update(u32 cpu, u64 key)
{
	u32 at = first_leaf + cpu;

	if (sim_tree_keys[cpu] == key)
		return;
	sim_tree_keys[cpu] = key;
	while (at > 0) {
		u32 before;

		at = (at - 1) / 4;
		before = sim_tree[at];
		play(at);
		/* Another CPU was first and still is: nothing above has changed. */
		if (before != cpu && sim_tree[at] == before)
			return;
	}
}
