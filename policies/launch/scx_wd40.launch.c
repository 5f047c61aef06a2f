/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the user half of scx_wd40 does before it attaches it, with the defaults of its options:
 * a domain for each cache. No task is moved between domains for balance later.
 */
#include "arena.h"

extern volatile u32 dom_numa_id_map[MAX_DOMS];

static int launch(void)
{
	u32 nr = scx_bpf_nr_cpu_ids();
	int err;

	if (nr > MAX_CPUS || sl_count_of(sl_scx_cpu_llc_id) > MAX_DOMS)
		return SL_REFUSE("scx_wd40 takes at most %u CPUs and %u caches", MAX_CPUS, MAX_DOMS);
	slice_ns = SCX_SLICE_DFL;
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
		dom_ptr domc = (dom_ptr)(uintptr_t)topo_nodes[TOPO_LLC][dom];

		scx_bitmap_set_cpu(cpu, node_data[node]);
		scx_bitmap_set_cpu(cpu, domc->cpumask);
		dom_numa_id_map[dom] = node;
	}
	return err;
}
