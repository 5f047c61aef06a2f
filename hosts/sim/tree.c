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
u32 sim_tree_first;
u64 sim_tree_first_key = SIM_NEVER;
static u32 *nodes;
static u32 nr_nodes;

static u32 earlier(u32 a, u32 b)
{
	return sim_tree_keys[b] < sim_tree_keys[a] ? b : a;
}

static void play(u32 at)
{
	const u32 *four = &nodes[4 * at + 1];

	nodes[at] = earlier(earlier(four[0], four[1]), earlier(four[2], four[3]));
}

/* The first of four CPUs that follow on one another, and its key. */
sl_inline u32 first_of_four(u32 cpu, u64 *key)
{
	const u64 *keys = &sim_tree_keys[cpu];
	bool second = keys[1] < keys[0], fourth = keys[3] < keys[2];
	u64 lower = second ? keys[1] : keys[0];
	u64 upper = fourth ? keys[3] : keys[2];

	*key = upper < lower ? upper : lower;
	return cpu + (upper < lower ? 2U + fourth : second);
}

int sim_tree_init(u32 nr_cpus)
{
	u32 nr_leaves = 4;

	/* The nodes above so many leaves: (leaves - 1) / 3. */
	while (nr_leaves < nr_cpus)
		nr_leaves *= 4;
	nr_nodes = (nr_leaves - 1) / 3;
	sim_tree_keys = calloc(nr_leaves, sizeof(*sim_tree_keys));
	nodes = calloc(nr_nodes, sizeof(*nodes));
	if (!sim_tree_keys || !nodes)
		return -ENOMEM;
	for (u32 i = 0; i < nr_leaves; i++)
		sim_tree_keys[i] = SIM_NEVER;
	for (u32 i = 0; i < nr_leaves / 4; i++)
		nodes[nr_nodes - nr_leaves / 4 + i] = 4 * i;
	for (u32 i = nr_nodes - nr_leaves / 4; i > 0; i--)
		play(i - 1);
	return 0;
}

/* The leaves' first of four, with @cpu among them, is @first now: play on above. */
static __noinline void play_up(u32 cpu, u32 first)
{
	u32 at = (nr_nodes + cpu - 1) / 4;
	u32 before = nodes[at];

	nodes[at] = first;
	/* While another CPU was first, and still is, nothing above has changed. */
	while (at > 0 && (before == cpu || nodes[at] != before)) {
		at = (at - 1) / 4;
		before = nodes[at];
		play(at);
	}
	sim_tree_first = nodes[0];
	sim_tree_first_key = sim_tree_keys[nodes[0]];
}

void sim_tree_update(u32 cpu, u64 key)
{
	u32 first;

	if (sim_tree_keys[cpu] == key)
		return;
	sim_tree_keys[cpu] = key;
	first = first_of_four(cpu & ~3U, &key);
	if (likely(nr_nodes == 1)) {
		sim_tree_first = first;
		sim_tree_first_key = key;
	} else {
		play_up(cpu, first);
	}
}
