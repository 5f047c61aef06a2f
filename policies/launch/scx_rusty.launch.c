/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The user half of scx_rusty, with the defaults of its options: a domain for each cache. It is loaded
 * on a machine that is not busy, and so the masks are, too, until it has looked for the first time.
 */
#include <scx/launch.h>

#if SL_HAS(genn)
#define LAUNCH_GEN genn
#else
#define LAUNCH_GEN gen
#endif

#if SL_HAS(dom_ctxs)
#define LAUNCH_DOM(id) (dom_ctxs[id])
#include "balance.h"

SL_USER_THREAD(LAUNCH_PERIOD_NS, LAUNCH_ROUND_NS)
{
	u64 not_busy = launch_not_busy();

	for (s32 cpu = 0; cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++) {
		u64 *word = &tune_input.direct_greedy_cpumask[cpu / 64], bit = 1ULL << cpu % 64;

		*word = not_busy >> cpu_dom_id_map[cpu] & 1 ? *word | bit : *word & ~bit;
	}
	tune_input.slice_ns = launch_slice_ns();
	tune_input.LAUNCH_GEN++;
	launch_balance();
}
#endif

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
	tune_input.LAUNCH_GEN = 1;
	return 0;
}
