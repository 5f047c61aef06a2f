/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the user half of scx_lavd does before it attaches it, with the defaults of its options:
 * autopilot, and no energy model, as on machines of which Linux has none. What boosts holders of futexes is not attached.
 */
#include "arena.h"
#include "core_types.h"

extern const volatile u8 preempt_shift;
extern const volatile u8 nr_pco_states;
extern const volatile u32 pco_bounds[LAVD_PCO_STATE_MAX];
extern const volatile u16 pco_nr_primary[LAVD_PCO_STATE_MAX];
extern const volatile u16 pco_table[LAVD_PCO_STATE_MAX][LAVD_CPU_ID_MAX];
extern const volatile bool is_smt_active;
extern const volatile u32 cpu_sibling[LAVD_CPU_ID_MAX];
extern const volatile bool is_autopilot_on;

/* The number of the group of @cpu among those of the same outer group. */
static u32 launch_number(int (*group)(s32 cpu), int (*outer)(s32 cpu), s32 cpu)
{
	u32 nr = 0;

	for (s32 i = 0; i < group(cpu); i++)
		nr += group(i) == i && outer(i) == outer(cpu);
	return nr;
}

static int launch_same(s32 cpu)
{
	return cpu;
}

/*
 * Where @cpu is in an order of CPUs: lower ones come first. For performance the first of each core comes first,
 * then the fastest of each cache; for power the little ones do, if there are any, core by core.
 */
static u64 launch_place(s32 cpu, bool is_for_performance)
{
	u64 node = (u64)scx_bpf_cpu_node(cpu), slow = SCX_CPUPERF_ONE - launch_capacity(cpu);
	u64 in_node = launch_number(sl_scx_cpu_llc_id, scx_bpf_cpu_node, cpu);
	u64 in_cache = launch_number(sl_scx_cpu_core_id, sl_scx_cpu_llc_id, cpu);
	u64 in_core = launch_number(launch_same, sl_scx_cpu_core_id, cpu), nr_siblings = 0;

	for (s32 i = 0; i < (s32)scx_bpf_nr_cpu_ids(); i++)
		nr_siblings += sl_scx_cpu_core_id(i) == sl_scx_cpu_core_id(cpu);
	if (is_for_performance)
		return in_core << 54 | node << 44 | in_node << 34 | slow << 22 | nr_siblings << 12 |
		       in_cache;
	if (launch_has_little_cores())
		slow = SCX_CPUPERF_ONE - slow;
	return node << 52 | in_node << 42 | slow << 30 | in_cache << 20 |
	       (LAVD_CPU_ID_MAX - nr_siblings) << 10 | in_core;
}

/* The CPUs in such an order, of equal ones the first CPU first. */
static u16 launch_order[2][LAVD_CPU_ID_MAX];

static void launch_sort(bool is_for_performance)
{
	static u64 places[LAVD_CPU_ID_MAX];
	u16 *order = launch_order[is_for_performance];

	for (s32 cpu = 0; cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++) {
		u64 place = launch_place(cpu, is_for_performance);
		s32 at = cpu;

		for (; at && places[at - 1] > place; at--) {
			places[at] = places[at - 1];
			order[at] = order[at - 1];
		}
		places[at] = place;
		order[at] = (u16)cpu;
	}
}

static void launch_state(u32 state, u32 capacity, bool is_for_performance)
{
	SL_SET(pco_bounds[state], capacity);
	SL_SET(pco_nr_primary[state], 1);
	for (u32 i = 0; i < scx_bpf_nr_cpu_ids(); i++)
		SL_SET(pco_table[state][i], launch_order[is_for_performance][i]);
}

/* A domain is the big, or the little, CPUs of a cache. They are numbered in the order for performance. */
static struct launch_domain {
	s32 cache, node;
	bool is_big;
} launch_domains[LAVD_CPDOM_MAX_NR];
static u32 launch_nr_domains;

static u32 launch_domain_of(s32 cpu)
{
	struct launch_domain d = { sl_scx_cpu_llc_id(cpu), scx_bpf_cpu_node(cpu),
				   launch_core_type(cpu) != LAUNCH_LITTLE };
	u32 id = 0;

	while (id < launch_nr_domains &&
	       (launch_domains[id].cache != d.cache || launch_domains[id].is_big != d.is_big))
		id++;
	if (id == launch_nr_domains && id < LAVD_CPDOM_MAX_NR)
		launch_domains[launch_nr_domains++] = d;
	return id;
}

/* How far apart two domains are; 0: they are the same. */
static u32 launch_distance(u32 a, u32 b)
{
	const struct launch_domain *from = &launch_domains[a], *to = &launch_domains[b];

	return (from->is_big != to->is_big ? 100 : 0) + (from->node != to->node	  ? 10 :
							 from->cache != to->cache ? 2 :
										    0);
}

static const u32 launch_distances[] = { 2, 10, 100, 102, 110 };

/* The domains at distance @d from @own, the nearest on a ring of them first. */
static u8 launch_neighbors(u32 own, u32 d, u8 *ids)
{
	u32 ring[LAVD_CPDOM_MAX_NR], nr_ring = 0, start = 0;
	u8 nr_ids = 0;

	for (u32 id = 0; id < launch_nr_domains; id++) {
		if (id == own)
			start = nr_ring;
		if (id == own || launch_distance(id, own) == d)
			ring[nr_ring++] = id;
	}
	for (u32 away = 1; away <= nr_ring / 2; away++) {
		u32 up = ring[(start + away) % nr_ring];
		u32 down = ring[(start + nr_ring - away) % nr_ring];

		/* Of two that are as far the one with the lower place in the ring. */
		bool is_up_first = (start + away) % nr_ring < (start + nr_ring - away) % nr_ring;

		ids[nr_ids++] = (u8)(is_up_first ? up : down);
		if (up != down)
			ids[nr_ids++] = (u8)(is_up_first ? down : up);
	}
	return nr_ids;
}

/* Return: whether the policy has room for all distances. */
static bool launch_domain(u32 id)
{
	const struct launch_domain *d = &launch_domains[id];
	struct cpdom_ctx *c = &cpdom_ctxs[id];
	u8 ids[LAVD_CPDOM_MAX_NR], nr;
	u32 nr_distances = 0;

	c->id = c->alt_id = id;
	c->numa_id = (u8)d->node;
	c->llc_id = (u8)sl_index_of(sl_scx_cpu_llc_id, d->cache);
	c->is_big = d->is_big;
	c->is_valid = 1;
	for (s32 i = 0; i < (s32)scx_bpf_nr_cpu_ids(); i++) {
		if (launch_domain_of(i) == id)
			c->__cpumask[i / 64] |= 1ULL << i % 64;
	}
	for (u32 i = 0; i < ARRAY_SIZE(launch_distances); i++) {
		nr = launch_neighbors(id, launch_distances[i], ids);
		if (!nr)
			continue;
		if (nr_distances == ARRAY_SIZE(c->nr_neighbors))
			return false;
		/* The nearest one of the other type. */
		if (launch_distances[i] >= 100 && c->alt_id == id)
			c->alt_id = ids[0];
		for (u8 k = 0; k < nr; k++)
#if SL_HAS(neighbor_ids)
			c->neighbor_ids[nr_distances * LAVD_CPDOM_MAX_NR + k] = ids[k];
#else
			c->neighbor_bits[nr_distances] |= 1ULL << ids[k];
#endif
		c->nr_neighbors[nr_distances++] = nr;
	}
	return true;
}

static int launch(void)
{
	u32 nr = scx_bpf_nr_cpu_ids(), nr_states = nr > 1 ? 2 : 1, sum = 0;

	if (nr > LAVD_CPU_ID_MAX)
		return SL_REFUSE("scx_lavd takes at most %u CPUs", LAVD_CPU_ID_MAX);
	launch_sort(false);
	launch_sort(true);
	for (u32 i = 0; i < nr; i++) {
		s32 cpu = launch_order[true][i], sibling = sl_sibling_of(cpu);

		SL_SET(cpu_capacity[cpu], (u16)launch_capacity(cpu));
		SL_SET(cpu_big[cpu], launch_core_type(cpu) != LAUNCH_LITTLE);
		SL_SET(cpu_turbo[cpu], launch_core_type(cpu) == LAUNCH_TURBO);
		SL_SET(cpu_sibling[cpu], (u32)(sibling < 0 ? cpu : sibling));
		sum += launch_capacity(cpu);
		if (launch_domain_of(cpu) == LAVD_CPDOM_MAX_NR)
			return SL_REFUSE("scx_lavd takes at most %u domains", LAVD_CPDOM_MAX_NR);
	}
	for (u32 id = 0; id < launch_nr_domains; id++) {
		if (!launch_domain(id))
			return SL_REFUSE("scx_lavd takes at most %u distances between domains",
					 LAVD_CPDOM_MAX_DIST);
	}
	SL_SET(nr_pco_states, nr_states);
	for (u32 i = 0; i < LAVD_PCO_STATE_MAX; i++) {
		if (i < nr_states - 1 || nr == 1)
			launch_state(i, launch_capacity(launch_order[false][0]), false);
		else
			launch_state(i, sum, true);
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
