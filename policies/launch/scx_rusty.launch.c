/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the user half of scx_rusty does before it attaches it, with the defaults of its options:
 * a domain for each cache. What it does later is as on a machine that is never busy: its masks and slice
 * stay those of a low utilization, and no task is moved between domains for balance.
 */
#include <scx/launch.h>

static int launch(void)
{
	u32 nr = scx_bpf_nr_cpu_ids();

	if (nr > MAX_CPUS || sl_count_of(sl_scx_cpu_llc_id) > MAX_DOMS)
		return SL_REFUSE("scx_rusty takes at most %u CPUs and %u caches", MAX_CPUS,
				 MAX_DOMS);
#if SL_HAS(scx_percpu_bpfmask_map)
	SL_CREATE_MAP(&scx_percpu_bpfmask_map);
#endif
	slice_ns = SCX_SLICE_DFL;
	SL_SET(nr_cpu_ids, nr);
	SL_SET(nr_nodes, scx_bpf_nr_node_ids());
	SL_SET(nr_doms, sl_count_of(sl_scx_cpu_llc_id));
	for (u32 cpu = 0; cpu < MAX_CPUS; cpu++) {
		u32 dom, node;

		if (cpu >= nr) {
			SL_SET(cpu_dom_id_map[cpu], ~0U);
			continue;
		}
		dom = sl_index_of(sl_scx_cpu_llc_id, (s32)cpu);
		node = (u32)scx_bpf_cpu_node((s32)cpu);
		SL_SET(cpu_dom_id_map[cpu], dom);
		SL_SET(dom_numa_id_map[dom], node);
		SL_SET(dom_cpumasks[dom][cpu / 64], dom_cpumasks[dom][cpu / 64] | 1ULL << cpu % 64);
		SL_SET(numa_cpumasks[node][cpu / 64],
		       numa_cpumasks[node][cpu / 64] | 1ULL << cpu % 64);
		tune_input.direct_greedy_cpumask[cpu / 64] |= 1ULL << cpu % 64;
		tune_input.kick_greedy_cpumask[cpu / 64] |= 1ULL << cpu % 64;
	}
	SL_SET(greedy_threshold, 1);
	tune_input.slice_ns = 20000000;
#if SL_HAS(genn)
	tune_input.genn = 1;
#else
	tune_input.gen = 1;
#endif
	return 0;
}
