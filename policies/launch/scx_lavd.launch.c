/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the user half of scx_lavd does before it attaches it, with the defaults of its options:
 * autopilot, and no energy model. What boosts holders of futexes is not attached.
 */
#include "arena.h"

extern const volatile u8 preempt_shift;
extern const volatile u8 nr_pco_states;
extern const volatile u32 pco_bounds[LAVD_PCO_STATE_MAX];
extern const volatile u16 pco_nr_primary[LAVD_PCO_STATE_MAX];
extern const volatile u16 pco_table[LAVD_PCO_STATE_MAX][LAVD_CPU_ID_MAX];
extern const volatile bool is_smt_active;
extern const volatile u32 cpu_sibling[LAVD_CPU_ID_MAX];
extern const volatile bool is_autopilot_on;

/* In an order of CPUs for performance the first of each core come first. */
static void launch_order(u32 state, u32 capacity, bool is_for_performance)
{
	s32 nr = (s32)scx_bpf_nr_cpu_ids();
	u32 at = 0;

	SL_SET(pco_bounds[state], capacity);
	SL_SET(pco_nr_primary[state], 1);
	for (s32 rank = 0; at < (u32)nr; rank++) {
		for (s32 cpu = 0; cpu < nr; cpu++) {
			s32 rank_in_core = 0;

			for (s32 i = sl_scx_cpu_core_id(cpu); i < cpu; i++)
				rank_in_core += sl_scx_cpu_core_id(i) == sl_scx_cpu_core_id(cpu);
			if (!is_for_performance || rank_in_core == rank)
				SL_SET(pco_table[state][at++], (u16)cpu);
		}
	}
}

/* How far apart two caches are, as places in the lists of neighbours: 0 the nearest. */
static u32 launch_distance(s32 a, s32 b)
{
	return scx_bpf_cpu_node(a) == scx_bpf_cpu_node(b) ? 2 : 10;
}

/* The caches at distance @d from that of @cpu, the nearest on a ring of them first. */
static u8 launch_neighbors(s32 cpu, u32 d, u8 *ids)
{
	u32 nr = sl_count_of(sl_scx_cpu_llc_id), own = sl_index_of(sl_scx_cpu_llc_id, cpu);
	s32 ring[LAVD_CPDOM_MAX_NR], nr_ring = 0, start = 0;
	u8 nr_ids = 0;

	for (s32 i = 0; i < (s32)scx_bpf_nr_cpu_ids(); i++) {
		u32 id = sl_index_of(sl_scx_cpu_llc_id, i);

		if (sl_scx_cpu_llc_id(i) != i || nr_ring == LAVD_CPDOM_MAX_NR)
			continue;
		if (id == own)
			start = nr_ring;
		if (id == own || launch_distance(i, cpu) == d)
			ring[nr_ring++] = (s32)id;
	}
	for (s32 away = 1; away <= nr_ring / 2 && nr > 1; away++) {
		s32 up = ring[(start + away) % nr_ring];
		s32 down = ring[(start + nr_ring - away) % nr_ring];

		/* Of two that are as far the one with the lower place in the ring. */
		bool is_up_first = (start + away) % nr_ring < (start + nr_ring - away) % nr_ring;

		ids[nr_ids++] = (u8)(is_up_first ? up : down);
		if (up != down)
			ids[nr_ids++] = (u8)(is_up_first ? down : up);
	}
	return nr_ids;
}

static void launch_domain(s32 cpu)
{
	struct cpdom_ctx *c = &cpdom_ctxs[sl_index_of(sl_scx_cpu_llc_id, cpu)];
	static const u32 distances[] = { 2, 10 };
	u32 nr_distances = 0;

	c->id = c->alt_id = sl_index_of(sl_scx_cpu_llc_id, cpu);
	c->numa_id = (u8)scx_bpf_cpu_node(cpu);
	c->llc_id = (u8)c->id;
	c->is_big = 1;
	c->is_valid = 1;
	for (s32 i = cpu; i < (s32)scx_bpf_nr_cpu_ids(); i++) {
		if (sl_scx_cpu_llc_id(i) == cpu)
			c->__cpumask[i / 64] |= 1ULL << i % 64;
	}
	for (u32 i = 0; i < 2; i++) {
#if SL_HAS(neighbor_ids)
		u8 *ids = &c->neighbor_ids[nr_distances * LAVD_CPDOM_MAX_NR];
		u8 nr = launch_neighbors(cpu, distances[i], ids);
#else
		u8 ids[LAVD_CPDOM_MAX_NR];
		u8 nr = launch_neighbors(cpu, distances[i], ids);

		for (u8 k = 0; k < nr; k++)
			c->neighbor_bits[nr_distances] |= 1ULL << ids[k];
#endif
		c->nr_neighbors[nr_distances] = nr;
		nr_distances += nr > 0;
	}
}

static int launch(void)
{
	u32 nr = scx_bpf_nr_cpu_ids(), nr_states = nr > 1 ? 2 : 1;

	if (nr > LAVD_CPU_ID_MAX)
		return SL_REFUSE("scx_lavd takes at most %u CPUs", LAVD_CPU_ID_MAX);
	for (u32 cpu = 0; cpu < nr; cpu++) {
		s32 sibling = sl_sibling_of((s32)cpu);

		SL_SET(cpu_capacity[cpu], (u16)scx_bpf_cpuperf_cap((s32)cpu));
		SL_SET(cpu_big[cpu], 1);
		SL_SET(cpu_turbo[cpu], 0);
		SL_SET(cpu_sibling[cpu], sibling < 0 ? cpu : (u32)sibling);
		if (sl_scx_cpu_llc_id((s32)cpu) == (s32)cpu)
			launch_domain((s32)cpu);
	}
	SL_SET(nr_pco_states, nr_states);
	for (u32 i = 0; i < LAVD_PCO_STATE_MAX; i++) {
		bool is_last = i >= nr_states - 1;

		launch_order(i, is_last ? nr * SCX_CPUPERF_ONE : SCX_CPUPERF_ONE, is_last && nr > 1);
	}
	SL_SET(nr_llcs, sl_count_of(sl_scx_cpu_llc_id));
#if SL_HAS(__nr_cpu_ids)
	SL_SET(__nr_cpu_ids, nr);
#else
	SL_SET(nr_cpu_ids, nr);
#endif
	SL_SET(is_smt_active, sl_has_smt());
	SL_SET(is_autopilot_on, true);
	SL_SET(slice_max_ns, 5000000);
	SL_SET(slice_min_ns, 500000);
#if SL_HAS(pinned_slice_ns)
	SL_SET(pinned_slice_ns, 5000000);
#endif
	SL_SET(preempt_shift, 6);
#if SL_HAS(arena_init)
	return launch_arena(sizeof(task_ctx));
#else
	return 0;
#endif
}
