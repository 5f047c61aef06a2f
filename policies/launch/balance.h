/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * balance.h - what the user halves of scx_rusty and scx_wd40 do while tasks run, with the defaults of their options:
 * every 100 ms they look how busy the domains are, every 2 s they move tasks from those with more load than the average to
 * those with less.
 *
 * A load is a weight times a duty cycle, the part of the time in which tasks could run; here it is an integer with
 * LAUNCH_BITS of fraction, which that half has in floating point.
 *
 * Included by launch files, which say before what differs: LAUNCH_DOM(id), the domain's context, and LAUNCH_GEN, the name
 * of the generation of active tasks.
 */
#include <scx/launch.h>

/* CPU time of a round: /proc/stat is read and parsed. */
#define LAUNCH_ROUND_NS 100000
#define LAUNCH_PERIOD_NS 100000000
#define LAUNCH_ROUNDS_PER_BALANCE 20
#define LAUNCH_BITS 20 /* as RAVG_FRAC_BITS */
#define LAUNCH_ONE (1LL << LAUNCH_BITS)

static s64 launch_multiply(s64 a, s64 b)
{
	return (s64)((__int128)a * b >> LAUNCH_BITS);
}

static s64 launch_size(s64 difference)
{
	return difference < 0 ? -difference : difference;
}

/* ---- how busy they are ---------------------------------------------------- */

#define LAUNCH_BILLION 1000000000ULL

/* Whether all CPUs are: weights count only then. */
static bool launch_is_full;

/* How long a CPU has not been idle since the last round, of a billion. */
static u64 launch_busy(s32 cpu)
{
	static u64 idle_before_ns[MAX_CPUS], before_ns[MAX_CPUS];
	u64 idle_ns = sl_scx_cpu_idle_ns(cpu);
	u64 now_ns = idle_ns + sl_scx_cpu_user_ns(cpu) + sl_scx_cpu_system_ns(cpu);
	u64 idle_diff_ns = idle_ns - idle_before_ns[cpu], diff_ns = now_ns - before_ns[cpu];

	idle_before_ns[cpu] = idle_ns;
	before_ns[cpu] = now_ns;
	return diff_ns ? (diff_ns - idle_diff_ns) * LAUNCH_BILLION / diff_ns : LAUNCH_BILLION;
}

/* Which domains are below 90 %; their tasks may be put on any idle CPU of these. */
static u64 launch_not_busy(void)
{
	u64 sums[MAX_DOMS] = { 0 }, sum = 0, mask = 0;
	u32 nr[MAX_DOMS] = { 0 }, nr_cpus = scx_bpf_nr_cpu_ids();

	for (s32 cpu = 0; cpu < (s32)nr_cpus; cpu++) {
		u64 busy = launch_busy(cpu);
		u32 dom = sl_index_of(sl_scx_cpu_llc_id, cpu);

		sums[dom] += busy;
		sum += busy;
		nr[dom]++;
	}
	for (u32 dom = 0; dom < nr_doms; dom++)
		mask |= (u64)(sums[dom] * 10 < nr[dom] * 9 * LAUNCH_BILLION) << dom;
	launch_is_full = sum / nr_cpus >= 99999ULL * (LAUNCH_BILLION / 100000);
	return mask;
}

/* Slices are short only where no CPU is ever idle. */
static u64 launch_slice_ns(void)
{
	return launch_is_full ? 1000000 : 20000000;
}

/* ---- what is too much where ----------------------------------------------- */

struct launch_entity {
	s64 load, average;
	u32 percent; /* of the average: a difference that matters */
	enum { LAUNCH_LISTED, LAUNCH_TRIED, LAUNCH_DONE } state;
};

static struct launch_entity launch_doms[MAX_DOMS], launch_nodes[MAX_DOMS];

static s64 launch_imbalance(const struct launch_entity *e)
{
	return e->load - e->average;
}

/* Return: its imbalance, if that matters and has this sign; 0: it does not, or has not. */
static s64 launch_excess(const struct launch_entity *e, int sign)
{
	s64 imbalance = launch_imbalance(e) * sign;

	return imbalance * 100 > e->average * e->percent ? imbalance : 0;
}

/* Return: the listed one of a node (of all: -1) with the highest load, or with the lowest; NULL: there is none. */
static struct launch_entity *launch_extreme(struct launch_entity *of, u32 nr, s32 node, int sign)
{
	struct launch_entity *found = NULL;

	for (u32 i = 0; i < nr; i++) {
		if (of[i].state == LAUNCH_LISTED && (node < 0 || (s32)dom_numa_id_map[i] == node) &&
		    (!found || of[i].load * sign > found->load * sign))
			found = &of[i];
	}
	return found;
}

static void launch_list_tried(struct launch_entity *of, u32 nr)
{
	for (u32 i = 0; i < nr; i++) {
		if (of[i].state == LAUNCH_TRIED)
			of[i].state = LAUNCH_LISTED;
	}
}

/* The weight that counts for the heaviest tasks: what is above could not be had, one CPU being one. */
static s64 launch_weight_max;

static s64 launch_bucket_weight(u32 bucket)
{
	return 1 + bucket * LB_WEIGHT_PER_BUCKET + LB_WEIGHT_PER_BUCKET / 2;
}

static s64 launch_cut(s64 weight)
{
	weight *= LAUNCH_ONE;
	return weight < launch_weight_max ? weight : launch_weight_max;
}

/* As the "infeasible weights" of upstream's scx_utils: from the heaviest on, until the next one can be had. */
static void launch_find_weight_max(const s64 *duties)
{
	const s64 near = LAUNCH_ONE / 10000, all = (s64)scx_bpf_nr_cpu_ids() * LAUNCH_ONE;
	s64 load = 0, left = all;

	launch_weight_max = LB_MAX_WEIGHT * LAUNCH_ONE;
	for (u32 i = 0; i < LB_LOAD_BUCKETS; i++)
		load += duties[i] * launch_bucket_weight(i);
	for (s32 i = LB_LOAD_BUCKETS - 1; i >= 0; i--) {
		s64 weight = launch_bucket_weight((u32)i), limit;

		if (!duties[i])
			continue;
		limit = left > 0 ? (s64)(((__int128)load << LAUNCH_BITS) / left) : 0;
		/* Nor is anything above what the heaviest could have. */
		if (left == all && limit > weight * LAUNCH_ONE + near)
			return;
		if (limit + near >= weight * LAUNCH_ONE) {
			launch_weight_max = limit;
			return;
		}
		left -= duties[i];
		load -= duties[i] * weight;
	}
}

static void launch_measure(u64 now_ns)
{
	static s64 duties[MAX_DOMS][LB_LOAD_BUCKETS], all[LB_LOAD_BUCKETS];
	s64 total = 0;

	__builtin_memset(all, 0, sizeof(all));
	for (u32 dom = 0; dom < nr_doms; dom++) {
		for (u32 i = 0; i < LB_LOAD_BUCKETS; i++) {
			duties[dom][i] = (s64)ravg_read(&LAUNCH_DOM(dom)->buckets[i].rd, now_ns,
							load_half_life);
			all[i] += duties[dom][i];
		}
	}
	launch_find_weight_max(all);
	for (u32 dom = 0; dom < nr_doms; dom++) {
		s64 load = 0;

		for (u32 i = 0; i < LB_LOAD_BUCKETS; i++)
			load += launch_is_full ?
					launch_multiply(duties[dom][i],
							launch_cut(launch_bucket_weight(i))) :
					duties[dom][i] * LB_DEFAULT_WEIGHT;
		launch_doms[dom] = (struct launch_entity){ .load = load, .percent = 5 };
		total += load;
	}
	for (u32 i = 0; i < nr_nodes; i++)
		launch_nodes[i] = (struct launch_entity){ .average = total / nr_nodes,
							  .percent = 17 };
	for (u32 dom = 0; dom < nr_doms; dom++) {
		launch_doms[dom].average = total / nr_doms;
		launch_nodes[dom_numa_id_map[dom]].load += launch_doms[dom].load;
	}
}

/* ---- what is moved -------------------------------------------------------- */

/* Tasks of a domain that were active since they were asked for last, by load. */
static struct launch_tasks {
	bool is_known;
	u32 nr;
	struct {
		task_ptr task;
		s64 load;
	} at[MAX_DOM_ACTIVE_TPTRS];
} launch_tasks[MAX_DOMS];

static void launch_find_tasks(u32 dom, u64 now_ns)
{
	struct launch_tasks *tasks = &launch_tasks[dom];
	struct dom_active_tasks *active = (void *)&LAUNCH_DOM(dom)->active_tasks;
	u64 from = active->read_idx, to = active->write_idx;

	if (tasks->is_known)
		return;
	tasks->is_known = true;
	tasks->nr = 0;
	active->read_idx = to;
	active->LAUNCH_GEN++;
	if (to - from > MAX_DOM_ACTIVE_TPTRS)
		from = to - MAX_DOM_ACTIVE_TPTRS;
	for (; from < to; from++) {
		task_ptr task = active->tasks[from % MAX_DOM_ACTIVE_TPTRS];
		s64 duty = (s64)ravg_read(&task->dcyc_rd, now_ns, load_half_life), load;
		u32 at;

		load = launch_is_full ? launch_multiply(duty, launch_cut(task->weight)) :
					duty * LB_DEFAULT_WEIGHT;
		if (task->target_dom != dom || !load)
			continue;
		for (at = tasks->nr++; at && tasks->at[at - 1].load > load; at--)
			tasks->at[at] = tasks->at[at - 1];
		tasks->at[at].task = task;
		tasks->at[at].load = load;
	}
}

/* What is left where @load goes from one domain to the other. */
static s64 launch_left(s64 to_push, s64 to_pull, s64 load)
{
	return launch_size(to_push - load) + launch_size(to_pull - load);
}

/*
 * Move the task whose load is nearest to @wanted, of those that prefer the other domain, or else of all that may be
 * there. Those that may not are not looked at again in this round. Return: its load; 0: none makes it better.
 */
static s64 launch_move(u32 from, u32 to, s64 to_push, s64 to_pull, s64 wanted, u64 now_ns)
{
	struct launch_tasks *tasks = &launch_tasks[from];
	u32 nr = 0;

	launch_find_tasks(from, now_ns);
	for (u32 i = 0; i < tasks->nr; i++) {
		if (tasks->at[i].task->dom_mask >> to & 1)
			tasks->at[nr++] = tasks->at[i];
	}
	tasks->nr = nr;
	for (int is_any = 0; is_any < 2; is_any++) {
		s32 below = -1, above = -1, best;
		s64 load;

		for (s32 i = 0; i < (s32)nr; i++) {
			if (!is_any && !(tasks->at[i].task->preferred_dom_mask >> to & 1))
				continue;
			if (tasks->at[i].load <= wanted)
				below = i;
			if (tasks->at[i].load >= wanted && above < 0)
				above = i;
		}
		best = below < 0 ? above : below;
		if (best < 0)
			continue;
		if (above >= 0 && launch_left(to_push, to_pull, tasks->at[above].load) <
					  launch_left(to_push, to_pull, tasks->at[best].load))
			best = above;
		load = tasks->at[best].load;
		if (to_push + to_pull < launch_left(to_push, to_pull, load))
			continue;
		tasks->at[best].task->target_dom = to;
		launch_doms[from].load -= load;
		launch_doms[to].load += load;
		for (tasks->nr--; best < (s32)tasks->nr; best++)
			tasks->at[best] = tasks->at[best + 1];
		return load;
	}
	return 0;
}

static s64 launch_half_of_smaller(const struct launch_entity *a, const struct launch_entity *b)
{
	s64 from = launch_size(launch_imbalance(a)), to = launch_size(launch_imbalance(b));

	return (from < to ? from : to) / 2;
}

static void launch_balance_node(s32 node, u64 now_ns)
{
	struct launch_entity *push, *pull, *doms = launch_doms;

	while ((push = launch_extreme(doms, nr_doms, node, 1)) && launch_excess(push, 1)) {
		s64 to_push = launch_imbalance(push), pushed = 0;

		push->state = LAUNCH_DONE;
		while (pushed < to_push / 2 && (pull = launch_extreme(doms, nr_doms, node, -1)) &&
		       launch_excess(pull, -1)) {
			s64 moved = launch_move((u32)(push - doms), (u32)(pull - doms), to_push,
						-launch_imbalance(pull),
						launch_half_of_smaller(push, pull), now_ns);

			pushed += moved;
			if (!moved)
				pull->state = LAUNCH_TRIED;
		}
		launch_list_tried(doms, nr_doms);
	}
	for (u32 i = 0; i < nr_doms; i++)
		doms[i].state = LAUNCH_LISTED;
}

/* One task from one node to another. Return: its load; 0: none was moved. */
static s64 launch_balance_pair(struct launch_entity *from, struct launch_entity *to, u64 now_ns)
{
	struct launch_entity *push, *pull, *doms = launch_doms;
	s64 to_push = launch_imbalance(from), to_pull = -launch_imbalance(to), moved = 0;
	s64 wanted = launch_half_of_smaller(from, to);
	s32 from_node = (s32)(from - launch_nodes), to_node = (s32)(to - launch_nodes);

	while (!moved && (push = launch_extreme(doms, nr_doms, from_node, 1)) &&
	       launch_excess(push, 1)) {
		push->state = LAUNCH_DONE;
		while (!moved && (pull = launch_extreme(doms, nr_doms, to_node, -1)) &&
		       launch_excess(pull, -1)) {
			pull->state = LAUNCH_TRIED;
			moved = launch_move((u32)(push - doms), (u32)(pull - doms), to_push,
					    to_pull, wanted, now_ns);
		}
		launch_list_tried(doms, nr_doms);
	}
	from->load -= moved;
	to->load += moved;
	for (u32 i = 0; i < nr_doms; i++)
		doms[i].state = LAUNCH_LISTED;
	return moved;
}

/* In the last of so many rounds. */
static void launch_balance(void)
{
	static u32 nr_rounds;
	struct launch_entity *push, *pull, *nodes = launch_nodes;
	u64 now_ns = bpf_ktime_get_ns();

	if (++nr_rounds % LAUNCH_ROUNDS_PER_BALANCE)
		return;
	launch_measure(now_ns);
	for (u32 dom = 0; dom < nr_doms; dom++)
		launch_tasks[dom].is_known = false;
	while (nr_nodes > 1 && (push = launch_extreme(nodes, nr_nodes, -1, 1)) &&
	       launch_excess(push, 1)) {
		s64 cutoff = launch_imbalance(push) / 2, pushed = 0;

		push->state = LAUNCH_DONE;
		while (pushed < cutoff && (pull = launch_extreme(nodes, nr_nodes, -1, -1)) &&
		       launch_excess(pull, -1)) {
			pull->state = LAUNCH_TRIED;
			pushed += launch_balance_pair(push, pull, now_ns);
		}
		launch_list_tried(nodes, nr_nodes);
	}
	for (u32 node = 0; node < nr_nodes; node++)
		launch_balance_node((s32)node, now_ns);
}
