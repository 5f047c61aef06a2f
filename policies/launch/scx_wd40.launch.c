/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The user half of scx_wd40, with the defaults of its options: a domain for each cache. It is loaded
 * on a machine that is not busy, and so the masks are, too, until it has looked for the first time.
 */
#include "arena.h"

extern volatile u32 dom_numa_id_map[MAX_DOMS];

#define LAUNCH_GEN gen
#define LAUNCH_DOM(id) ((dom_ptr)(uintptr_t)topo_nodes[TOPO_LLC][id])
#include "balance.h"

static void launch_set_masks(u64 not_busy)
{
	for (s32 cpu = 0; cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++) {
		u32 dom = sl_index_of(sl_scx_cpu_llc_id, cpu);

		if (not_busy >> dom & 1) {
			scx_bitmap_set_cpu((u32)cpu, direct_greedy_cpumask);
			scx_bitmap_set_cpu((u32)cpu, LAUNCH_DOM(dom)->direct_greedy_cpumask);
		} else {
			/* The domain's own one stays. */
			scx_bitmap_clear_cpu((u32)cpu, direct_greedy_cpumask);
		}
		scx_bitmap_set_cpu((u32)cpu, kick_greedy_cpumask);
	}
	slice_ns = launch_slice_ns();
}

SL_USER_THREAD(LAUNCH_PERIOD_NS, LAUNCH_ROUND_NS)
{
	launch_set_masks(launch_not_busy());
	launch_balance();
}

static int launch(void)
{
	u32 nr = scx_bpf_nr_cpu_ids();
	int err;

	if (nr > MAX_CPUS || sl_count_of(sl_scx_cpu_llc_id) > MAX_DOMS)
		return SL_REFUSE("scx_wd40 takes at most %u CPUs and %u caches", MAX_CPUS, MAX_DOMS);
	SL_SET(nr_cpu_ids, nr);
	SL_SET(nr_nodes, scx_bpf_nr_node_ids());
	SL_SET(nr_doms, sl_count_of(sl_scx_cpu_llc_id));
	SL_SET(greedy_threshold, 1);
	err = launch_arena(sizeof(struct task_ctx));
	if (!err)
		err = SL_CALL(wd40_setup, NULL, 0);
	for (u32 cpu = 0; !err && cpu < nr; cpu++) {
		u32 dom = sl_index_of(sl_scx_cpu_llc_id, (s32)cpu);
		u32 node = (u32)scx_bpf_cpu_node((s32)cpu);

		scx_bitmap_set_cpu(cpu, node_data[node]);
		scx_bitmap_set_cpu(cpu, LAUNCH_DOM(dom)->cpumask);
		dom_numa_id_map[dom] = node;
	}
	if (!err)
		launch_set_masks(~0ULL);
	return err;
}
