/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the user halves of scx_p2dq and scx_chaos do before they attach it, with the defaults of its options. */
#include "arena.h"
#include "core_types.h"

/*
 * Power for the performance of a CPU, as that half estimates it where Linux has no energy model and no frequencies:
 * 3 W and 50 mW more for the fast ones; for others 1.2 W by capacity, and a fiftieth more.
 */
static u32 launch_energy_cost(s32 cpu)
{
	u32 capacity = launch_capacity(cpu), milliwatts = 3000 + 50;

	if (capacity < SCX_CPUPERF_ONE * 78 / 100) {
		milliwatts = 1200 * capacity / SCX_CPUPERF_ONE;
		milliwatts += milliwatts / 50 > 15 ? milliwatts / 50 : 15;
	}
	return milliwatts * 1024 / capacity;
}

static int launch_p2dq(void)
{
	u32 nr = scx_bpf_nr_cpu_ids();

	SL_SET(nr_cpu_ids, nr);
	SL_SET(debug, 0);
	SL_SET(topo_config.nr_cpus, nr);
	SL_SET(topo_config.nr_llcs, sl_count_of(sl_scx_cpu_llc_id));
	SL_SET(topo_config.nr_nodes, scx_bpf_nr_node_ids());
	SL_SET(topo_config.smt_enabled, sl_has_smt());
	SL_SET(topo_config.has_little_cores, launch_has_little_cores());
	for (u32 i = 0; i < 3; i++)
		dsq_time_slices[i] = i ? 100000ULL << i << 4 : 100000;
	SL_SET(timeline_config.max_exec_ns, 2 * dsq_time_slices[2]);
	SL_SET(timeline_config.autoslice, false);
	SL_SET(timeline_config.deadline, false);
	SL_SET(lb_config.min_nr_queued_pick2, 0);
	SL_SET(lb_config.slack_factor, 5);
	SL_SET(lb_config.dispatch_lb_interactive, true);
	SL_SET(lb_config.wakeup_lb_busy, 0);
	SL_SET(lb_config.single_llc_mode, topo_config.nr_llcs == 1);
	SL_SET(p2dq_config.dsq_shift, 4);
	SL_SET(p2dq_config.task_slice, false);
	SL_SET(p2dq_config.kthreads_local, true);
	SL_SET(p2dq_config.llc_shards, 1);
	SL_SET(p2dq_config.keep_running_enabled, false);
	SL_SET(p2dq_config.pelt_enabled, true);
	SL_SET(p2dq_config.fork_balance, true);
	SL_SET(p2dq_config.exec_balance, true);
	SL_SET(p2dq_config.small_task_threshold, 256);
	SL_SET(p2dq_config.large_task_threshold, 768);
	for (u32 cpu = 0; cpu < nr; cpu++) {
		u32 llc = sl_index_of(sl_scx_cpu_llc_id, (s32)cpu);

		big_core_ids[cpu] = launch_core_type((s32)cpu) == LAUNCH_TURBO;
		cpu_core_ids[cpu] = sl_index_of(sl_scx_cpu_core_id, (s32)cpu);
		cpu_llc_ids[cpu] = llc;
		cpu_node_ids[cpu] = (u64)scx_bpf_cpu_node((s32)cpu);
		cpu_capacity[cpu] = launch_capacity((s32)cpu);
		cpu_energy_cost[cpu] = launch_energy_cost((s32)cpu);
		llc_ids[llc] = llc;
	}
	return launch_arena(sizeof(task_ctx));
}
