/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * nodes.h - what the user half of scx_cosmos tells it of nodes: that of each CPU.
 *
 * Included by launch files.
 */
#include <scx/launch.h>

static void launch_nodes(void)
{
#if SL_HAS(cpu_node_map)
	for (u32 cpu = 0; cpu < scx_bpf_nr_cpu_ids(); cpu++) {
		u32 node = (u32)scx_bpf_cpu_node((s32)cpu);

		bpf_map_update_elem(&cpu_node_map, &cpu, &node, BPF_ANY);
	}
#endif
}
