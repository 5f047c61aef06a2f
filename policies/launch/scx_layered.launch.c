/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the user half of scx_layered does before it attaches it, with the defaults of its options and
 * three open layers: tasks of nice above 0, tasks below 0, which preempt, and all others.
 *
 * Twice a second that half also gives each confined or grouped layer its CPUs, by their use. There is
 * none here: an open layer has all CPUs.
 */
#include "core_types.h"

enum { LAUNCH_BATCH, LAUNCH_IMMEDIATE, LAUNCH_NORMAL, LAUNCH_NR };

static void launch_layer(u32 id, const char *name, bool is_preempting, u64 min_exec_ns)
{
	struct layer *l = &layers[id];

	l->id = id;
	for (u32 i = 0; name[i] && i < MAX_LAYER_NAME - 1; i++)
		l->name[i] = name[i];
	l->kind = LAYER_KIND_OPEN;
	l->nr_match_ors = 1;
	l->matches[0].nr_match_ands = id == LAUNCH_NORMAL ? 0 : 1;
	l->matches[0].matches[0].kind = id == LAUNCH_BATCH ? MATCH_NICE_ABOVE : MATCH_NICE_BELOW;
	l->preempt = is_preempting;
	l->slice_ns = l->yield_step_ns = 20000000;
	l->min_exec_ns = min_exec_ns;
	l->weight = DEFAULT_LAYER_WEIGHT;
	l->perf = 1024;
	l->disallow_open_after_ns = 2 * SCX_SLICE_DFL;
	l->disallow_preempt_after_ns = 4 * SCX_SLICE_DFL;
	l->nr_cpus = scx_bpf_nr_cpu_ids();
#if SL_HAS(cpuset)
	for (u32 i = 0; i < MAX_CPUS_U8; i++)
		l->cpuset[i] = 0xff;
#endif
	for (s32 cpu = 0; cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++) {
		u32 llc = sl_index_of(sl_scx_cpu_llc_id, cpu);

		l->cpus[cpu / 8] |= (u8)(1U << cpu % 8);
#if SL_HAS(llc_mask)
		l->llc_mask |= 1ULL << llc;
#endif
		l->nr_llc_cpus[llc]++;
#if SL_HAS(layer_node_ctx)
		l->node[scx_bpf_cpu_node(cpu)].nr_cpus++;
#endif
	}
	SL_SET(layer_iteration_order[id], id);
}

/* How far a CPU is: the same, of its core, its cache, its node, or farther. */
static u32 launch_distance(s32 a, s32 b)
{
	return a == b					      ? 0 :
	       sl_scx_cpu_core_id(a) == sl_scx_cpu_core_id(b) ? 1 :
	       sl_scx_cpu_llc_id(a) == sl_scx_cpu_llc_id(b)   ? 2 :
	       scx_bpf_cpu_node(a) == scx_bpf_cpu_node(b)     ? 3 :
								4;
}

/*
 * All CPUs, the near ones first, and of the same distance those with the nearest numbers.
 * Which of two equal layers a CPU looks at first is drawn by chance there, and alternates here.
 */
static void launch_cpu(s32 cpu)
{
	s32 nr = (s32)scx_bpf_nr_cpu_ids();
	const u32 zero = 0;
	struct cpu_ctx *c = bpf_map_lookup_percpu_elem(&cpu_ctxs, &zero, (u32)cpu);
	u32 at = 0, ends[5];

	for (u32 distance = 0; distance < 5; distance++) {
		for (s32 off = 0; off < nr; off++) {
			s32 sides[] = { cpu - off, cpu + off };

			for (u32 i = off ? 0 : 1; i < 2; i++) {
				if (sides[i] >= 0 && sides[i] < nr &&
				    launch_distance(cpu, sides[i]) == distance)
					c->prox_map.cpus[at++] = (u16)sides[i];
			}
		}
		ends[distance] = at;
	}
	c->prox_map.core_end = ends[1];
	c->prox_map.llc_end = ends[2];
	c->prox_map.node_end = ends[3];
	c->prox_map.sys_end = ends[4];
	c->cpu = cpu;
	c->layer_id = MAX_LAYERS;
#if SL_HAS(is_big)
	c->is_big = launch_core_type(cpu) == LAUNCH_TURBO;
#endif
	for (u32 i = 0; i < MAX_LAYERS; i++) {
		c->ogp_layer_order[i] = c->op_layer_order[i] = i ? MAX_LAYERS : LAUNCH_IMMEDIATE;
		c->ogn_layer_order[i] = c->on_layer_order[i] = i > 1 ? MAX_LAYERS :
							       (u32)(cpu + (s32)i) % 2 ?
								       LAUNCH_BATCH :
								       LAUNCH_NORMAL;
		c->gp_layer_order[i] = c->gn_layer_order[i] = MAX_LAYERS;
	}
}

/* All caches, its own first, then those of its node; of two equal ones the first is one after @turn. */
static void launch_proximity(s32 cpu, u32 turn, struct llc_prox_map *map)
{
	s32 nr = (s32)scx_bpf_nr_cpu_ids();
	u32 at = 0;

	for (u32 distance = 0; distance < 3; distance++) {
		for (s32 k = 0; k < nr; k++) {
			s32 i = (k + (s32)turn) % nr;
			u32 away = i == cpu					? 0 :
				   scx_bpf_cpu_node(i) == scx_bpf_cpu_node(cpu) ? 1 :
										  2;

			if (sl_scx_cpu_llc_id(i) == i && away == distance)
				map->llcs[at++] = (u16)sl_index_of(sl_scx_cpu_llc_id, i);
		}
		if (distance == 1)
			map->node_end = at;
	}
	map->sys_end = at;
}

static void launch_cache(s32 cpu)
{
	u32 id = sl_index_of(sl_scx_cpu_llc_id, cpu);
	struct llc_ctx *c = bpf_map_lookup_elem(&llc_data, &id);

	SL_SET(llc_numa_id_map[id], (u32)scx_bpf_cpu_node(cpu));
#if SL_HAS(prox_maps)
	for (u32 turn = 0; turn < NUM_PROXIMITY_MAPS; turn++)
		launch_proximity(cpu, turn, &c->prox_maps[turn]);
#else
	launch_proximity(cpu, 0, &c->prox_map);
#endif
}

#if SL_HAS(node_prox_map)
/* Its caches, and all other nodes. */
static void launch_node(u32 node)
{
	struct node_ctx *c = bpf_map_lookup_elem(&node_data, &node);

	for (s32 cpu = 0; cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++) {
		if (sl_scx_cpu_llc_id(cpu) == cpu && scx_bpf_cpu_node(cpu) == (s32)node)
			c->llcs[c->nr_llcs++] = sl_index_of(sl_scx_cpu_llc_id, cpu);
	}
	for (u32 i = 0; i < scx_bpf_nr_node_ids(); i++) {
		if (i != node)
			c->prox_map.nodes[c->prox_map.sys_end++] = (u16)i;
	}
}
#endif

static int launch(void)
{
	u32 nr = scx_bpf_nr_cpu_ids();

	if (nr > MAX_CPUS || sl_count_of(sl_scx_cpu_llc_id) > MAX_LLCS)
		return SL_REFUSE("scx_layered takes at most %u CPUs and %u caches", MAX_CPUS,
				 MAX_LLCS);
	SL_SET(slice_ns, 20000000);
	SL_SET(max_exec_ns, 20 * 20000000);
	SL_SET(nr_cpu_ids, nr);
	SL_SET(nr_possible_cpus, nr);
	SL_SET(nr_nodes, scx_bpf_nr_node_ids());
	SL_SET(nr_llcs, sl_count_of(sl_scx_cpu_llc_id));
	SL_SET(smt_enabled, sl_has_smt());
	SL_SET(has_little_cores, launch_has_little_cores());
	SL_SET(lo_fb_wait_ns, 10000000);
	SL_SET(lo_fb_share_ppk, 51);
	SL_SET(nr_layers, LAUNCH_NR);
	SL_SET(nr_op_layers, 1);
	SL_SET(nr_on_layers, 2);
	SL_SET(min_open_layer_disallow_open_after_ns, 2 * SCX_SLICE_DFL);
	SL_SET(min_open_layer_disallow_preempt_after_ns, 4 * SCX_SLICE_DFL);
	for (s32 cpu = 0; cpu < (s32)nr; cpu++) {
		s32 node = scx_bpf_cpu_node(cpu);

		SL_SET(numa_cpumasks[node][cpu / 64],
		       numa_cpumasks[node][cpu / 64] | 1ULL << cpu % 64);
		SL_SET(cpu_llc_id_map[cpu], sl_index_of(sl_scx_cpu_llc_id, cpu));
		SL_SET(__sibling_cpu[cpu], sl_sibling_of(cpu));
		SL_SET(all_cpus[cpu / 8], (unsigned char)(all_cpus[cpu / 8] | 1U << cpu % 8));
		launch_cpu(cpu);
		if (sl_scx_cpu_llc_id(cpu) == cpu)
			launch_cache(cpu);
	}
#if SL_HAS(node_prox_map)
	for (u32 node = 0; node < scx_bpf_nr_node_ids(); node++)
		launch_node(node);
#endif
	launch_layer(LAUNCH_BATCH, "batch", false, 1000000);
	launch_layer(LAUNCH_IMMEDIATE, "immediate", true, 100000);
	launch_layer(LAUNCH_NORMAL, "normal", false, 0);
#if SL_HAS(kfuncs_supported_in_syscall)
	/* The masks are made once the policy has begun. */
	SL_SET(kfuncs_supported_in_syscall, false);
#endif
	return 0;
}
