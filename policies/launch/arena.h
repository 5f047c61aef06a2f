/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * arena.h - what the user halves of schedulers with upstream's library do first: memory for the
 * library, for each task's context, and a tree of the machine: all CPUs, nodes, caches, cores, CPUs.
 *
 * Included by launch files, each part of one of these schedulers.
 */
#include <scx/launch.h>
#if SL_HAS(arena_init)
#include <lib/arena.h>
#if __has_include(<lib/percpu.h>)
#include <lib/percpu.h>
#endif

static int launch_add(int (*is_in)(s32 cpu, s32 of), s32 of, u64 id)
{
	struct arena_alloc_mask_args mask = { 0 };
	struct arena_topology_node_init_args node = { .id = id };
	u32 nr = scx_bpf_nr_cpu_ids();
	int err = SL_CALL(arena_alloc_mask, &mask, sizeof(mask));

	if (err)
		return err;
	for (u32 cpu = 0; cpu < nr; cpu++) {
		if (is_in((s32)cpu, of))
			((u64 *)(uintptr_t)mask.bitmap)[cpu / 64] |= 1ULL << cpu % 64;
	}
	node.bitmap = mask.bitmap;
	return SL_CALL(arena_topology_node_init, &node, sizeof(node));
}

static int launch_any(s32 cpu, s32 of)
{
	return cpu >= 0 && of >= 0;
}

static int launch_same_node(s32 cpu, s32 of)
{
	return scx_bpf_cpu_node(cpu) == of;
}

static int launch_same_cache(s32 cpu, s32 of)
{
	return sl_scx_cpu_llc_id(cpu) == of;
}

static int launch_same_core(s32 cpu, s32 of)
{
	return sl_scx_cpu_core_id(cpu) == of;
}

static int launch_same_cpu(s32 cpu, s32 of)
{
	return cpu == of;
}

static int launch_arena(u64 task_bytes)
{
	struct arena_init_args args = { .static_pages = 8, .task_ctx_size = task_bytes };
	s32 nr = (s32)scx_bpf_nr_cpu_ids();
	int err;

#if SL_HAS(scx_percpu_storage_map)
	SL_CREATE_MAP(&scx_percpu_storage_map);
#endif
	err = SL_CALL(arena_init, &args, sizeof(args));
#if SL_HAS(arena_topology_init)
	struct arena_topology_init_args most;

	for (u32 level = 0; level < TOPO_MAX_LEVEL; level++)
		most.max_children[level] = (u32)nr;
	if (!err)
		err = SL_CALL(arena_topology_init, &most, sizeof(most));
#endif
	if (!err)
		err = launch_add(launch_any, 0, 0);
	for (s32 node = 0; !err && node < (s32)scx_bpf_nr_node_ids(); node++)
		err = launch_add(launch_same_node, node, (u64)node);
	for (s32 cpu = 0; !err && cpu < nr; cpu++) {
		if (sl_scx_cpu_llc_id(cpu) == cpu)
			err = launch_add(launch_same_cache, cpu,
					 sl_index_of(sl_scx_cpu_llc_id, cpu));
	}
	for (s32 cpu = 0; !err && cpu < nr; cpu++) {
		if (sl_scx_cpu_core_id(cpu) == cpu)
			err = launch_add(launch_same_core, cpu,
					 sl_index_of(sl_scx_cpu_core_id, cpu));
	}
	for (s32 cpu = 0; !err && cpu < nr; cpu++)
		err = launch_add(launch_same_cpu, cpu, (u64)cpu);
	return err;
}
#endif
