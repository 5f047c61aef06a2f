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
#include <errno.h>
#include <stdlib.h>

#include "sim.h"

u64 *sim_tree_keys;
u32 *sim_tree;
static u32 nr_nodes;

static u32 earlier(u32 a, u32 b)
{
	return sim_tree_keys[b] < sim_tree_keys[a] ? b : a;
}

static void play(u32 at)
{
	const u32 *four = &sim_tree[4 * at + 1];

	sim_tree[at] = earlier(earlier(four[0], four[1]), earlier(four[2], four[3]));
}

/* The first of four CPUs that follow on one another. */
static u32 first_of_four(u32 cpu)
{
	const u64 *keys = &sim_tree_keys[cpu];
	u64 low = keys[1] < keys[0] ? keys[1] : keys[0];
	u64 high = keys[3] < keys[2] ? keys[3] : keys[2];

	return high < low ? cpu + 2 + (keys[3] < keys[2]) : cpu + (keys[1] < keys[0]);
}

int sim_tree_init(u32 nr_cpus)
{
	u32 nr_leaves = 4;

	/* The nodes above so many leaves: (leaves - 1) / 3. */
	while (nr_leaves < nr_cpus)
		nr_leaves *= 4;
	nr_nodes = (nr_leaves - 1) / 3;
	sim_tree_keys = calloc(nr_leaves, sizeof(*sim_tree_keys));
	sim_tree = calloc(nr_nodes, sizeof(*sim_tree));
	if (!sim_tree_keys || !sim_tree)
		return -ENOMEM;
	for (u32 i = 0; i < nr_leaves; i++)
		sim_tree_keys[i] = SIM_NEVER;
	for (u32 i = 0; i < nr_leaves / 4; i++)
		sim_tree[nr_nodes - nr_leaves / 4 + i] = 4 * i;
	for (u32 i = nr_nodes - nr_leaves / 4; i > 0; i--)
		play(i - 1);
	return 0;
}

/* The first below @at was @before and may be another one, or have another key: play on. */
static __noinline void play_up(u32 at, u32 before, u32 cpu)
{
	/* While another CPU was first, and still is, nothing above has changed. */
	while (at > 0 && (before == cpu || sim_tree[at] != before)) {
		at = (at - 1) / 4;
		before = sim_tree[at];
		play(at);
	}
}

void sim_tree_update(u32 cpu, u64 key)
{
	u32 at = (nr_nodes + cpu - 1) / 4;
	u32 before;

	if (sim_tree_keys[cpu] == key)
		return;
	sim_tree_keys[cpu] = key;
	before = sim_tree[at];
	sim_tree[at] = first_of_four(cpu & ~3U);
	if (unlikely(at > 0))
		play_up(at, before, cpu);
}
