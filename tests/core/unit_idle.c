/* SPDX-License-Identifier: MIT */
/*
 * unit_idle.c - the choice of an idle CPU, against a search of all CPUs.
 *
 * Read next: core/idle.c.
 */
#include "unit.h"

static u16 smt[FAKE_CPUS_MAX], llc[FAKE_CPUS_MAX], node[FAKE_CPUS_MAX];
static bool is_idle[FAKE_CPUS_MAX];
static bool is_per_node;
static u32 nr_cpus;

/* A machine of random shape: cores in caches in nodes. */
static void random_machine(void)
{
	static const u32 sizes[] = { 1, 2, 4, 7, 16, 64, 65, 100, 200 };
	u32 per_core = 1U << fake_below(3);
	u32 per_cache = per_core * (1 + fake_below(8));
	u32 per_node = per_cache * (1 + fake_below(4));
	struct sl_config config = {
		.tasks_max = 10, .smt_of_cpu = smt, .llc_of_cpu = llc, .node_of_cpu = node
	};

	nr_cpus = sizes[fake_below(ARRAY_SIZE(sizes))];
	config.nr_cpus = nr_cpus;
	for (u32 i = 0; i < nr_cpus; i++) {
		smt[i] = (u16)(i / per_core);
		llc[i] = (u16)(i / per_cache);
		node[i] = (u16)(i / per_node);
		is_idle[i] = true;
	}
	CHECK(!sl_core_init(&config));
	CHECK(scx_bpf_nr_cpu_ids() == nr_cpus);
	CHECK(scx_bpf_nr_node_ids() == node[nr_cpus - 1] + 1U);
	CHECK(scx_bpf_cpu_node((s32)nr_cpus - 1) == node[nr_cpus - 1]);
	CHECK(scx_bpf_cpu_node((s32)nr_cpus) == -1);
}

static bool is_whole_core(u32 cpu)
{
	for (u32 i = 0; i < nr_cpus; i++) {
		if (smt[i] == smt[cpu] && !is_idle[i])
			return false;
	}
	return true;
}

/* How good @cpu is for a task that was on @prev, 0 being best (S25). */
static u32 rank(u32 cpu, u32 prev)
{
	u32 distance = cpu == prev	       ? 0 :
		       smt[cpu] == smt[prev]   ? 1 :
		       llc[cpu] == llc[prev]   ? 2 :
		       node[cpu] == node[prev] ? 3 :
		       is_per_node	       ? 4U + node[cpu] :
						 4;

	if (is_whole_core(cpu)) {
		/* A whole core that is not prev's own cannot hold its sibling,
		 * and one that is counts by cache. */
		return distance == 1 ? 2 : distance;
	}
	return 1000 + distance;
}

static void check_masks(void)
{
	const struct cpumask *idle = is_per_node ? NULL : scx_bpf_get_idle_cpumask();
	const struct cpumask *whole = is_per_node ? NULL : scx_bpf_get_idle_smtmask();
	u32 nr_idle = 0, nr_in_nodes = 0;

	for (u32 n = 0; is_per_node && n < scx_bpf_nr_node_ids(); n++)
		nr_in_nodes += bpf_cpumask_weight(scx_bpf_get_idle_cpumask_node((s32)n));
	for (u32 i = 0; i < nr_cpus; i++) {
		nr_idle += is_idle[i];
		if (is_per_node) {
			idle = scx_bpf_get_idle_cpumask_node(node[i]);
			whole = scx_bpf_get_idle_smtmask_node(node[i]);
		}
		CHECK(bpf_cpumask_test_cpu(i, idle) == is_idle[i], "cpu %u", i);
		CHECK(bpf_cpumask_test_cpu(i, whole) == is_whole_core(i), "cpu %u of %u", i,
		      nr_cpus);
	}
	CHECK(!is_per_node || nr_in_nodes == nr_idle, "a CPU is in another node's mask");
}

static struct cpumask random_mask(void)
{
	struct cpumask mask = { { 0 } };
	u32 dice = fake_below(4);

	for (u32 i = 0; i < nr_cpus; i++) {
		if (dice == 0 || !fake_below(dice + 1))
			mask.bits[i / 64] |= 1UL << (i % 64);
	}
	return mask;
}

static void choose(void)
{
	static struct sl_task t;
	struct cpumask may = random_mask(), also = random_mask();
	bool has_also = fake_below(2);
	u64 flags = (fake_below(3) ? 0 : SCX_PICK_IDLE_CORE) |
		    (fake_below(3) ? 0 : SCX_PICK_IDLE_IN_NODE);
	u32 prev = fake_below(nr_cpus);
	bool is_confined = is_per_node && (flags & SCX_PICK_IDLE_IN_NODE);
	u32 best = ~0U;
	s32 cpu;

	sl_task_setup(&t, 0, 1, "t");
	t.p.cpus_ptr = &may;
	for (u32 i = 0; i < nr_cpus; i++) {
		bool fits = is_idle[i] && bpf_cpumask_test_cpu(i, &may) &&
			    (!has_also || bpf_cpumask_test_cpu(i, &also)) &&
			    (!is_confined || node[i] == node[prev]) &&
			    (!(flags & SCX_PICK_IDLE_CORE) || is_whole_core(i));

		if (fits && rank(i, prev) < best)
			best = rank(i, prev);
	}
	cpu = inside_select_cpu_default(&t, (s32)prev, 0, has_also ? &also : NULL, flags);
	if (best == ~0U) {
		CHECK(cpu == -16, "cpu %d", cpu);
		return;
	}
	CHECK(cpu >= 0 && is_idle[cpu] && bpf_cpumask_test_cpu((u32)cpu, &may));
	CHECK(rank((u32)cpu, prev) == best, "cpu %d is of rank %u, not %u", cpu,
	      rank((u32)cpu, prev), best);
	is_idle[cpu] = false;
}

static void pick(void)
{
	struct cpumask may = random_mask();
	u64 flags = fake_below(2) ? SCX_PICK_IDLE_CORE : 0;
	bool is_any = fake_below(2), has_idle = false, is_empty = true;
	bool has_whole = false;
	s32 cpu;

	for (u32 i = 0; i < nr_cpus; i++) {
		if (!bpf_cpumask_test_cpu(i, &may))
			continue;
		is_empty = false;
		has_whole |= is_whole_core(i);
		has_idle |= is_idle[i] && (!flags || is_whole_core(i));
	}
	cpu = is_any ? scx_bpf_pick_any_cpu(&may, flags) : scx_bpf_pick_idle_cpu(&may, flags);
	if (is_empty || (!is_any && !has_idle)) {
		CHECK(cpu == -16);
		return;
	}
	CHECK(cpu >= 0 && bpf_cpumask_test_cpu((u32)cpu, &may));
	if (has_idle) {
		CHECK(is_idle[cpu] && has_whole == is_whole_core((u32)cpu));
		is_idle[cpu] = false;
	}
}

/* S51: the node that is asked for, then the others by number; whole cores first in each. */
static void pick_by_node(void)
{
	struct cpumask may = random_mask();
	u64 flags = fake_below(4); /* SCX_PICK_IDLE_CORE, SCX_PICK_IDLE_IN_NODE */
	u16 near = node[fake_below(nr_cpus)];
	bool is_any = fake_below(2);
	u32 best = ~0U, nr_may = 0;
	s32 cpu;

	for (u32 i = 0; i < nr_cpus; i++) {
		u32 cost = (node[i] == near ? 0 : 2 * (node[i] + 1U)) + !is_whole_core(i);

		if (!bpf_cpumask_test_cpu(i, &may) ||
		    ((flags & SCX_PICK_IDLE_IN_NODE) && node[i] != near))
			continue;
		nr_may++;
		if (is_idle[i] && (!(flags & SCX_PICK_IDLE_CORE) || is_whole_core(i)) && cost < best)
			best = cost;
	}
	cpu = is_any ? scx_bpf_pick_any_cpu_node(&may, near, flags) :
		       scx_bpf_pick_idle_cpu_node(&may, near, flags);
	if (best == ~0U) {
		CHECK(is_any && nr_may ? cpu >= 0 && bpf_cpumask_test_cpu((u32)cpu, &may) :
					 cpu == -16,
		      "cpu %d", cpu);
		CHECK(cpu < 0 || !(flags & SCX_PICK_IDLE_IN_NODE) || node[cpu] == near);
		return;
	}
	CHECK(cpu >= 0 && is_idle[cpu] && bpf_cpumask_test_cpu((u32)cpu, &may));
	CHECK((node[cpu] == near ? 0 : 2 * (node[cpu] + 1U)) + !is_whole_core((u32)cpu) == best);
	is_idle[cpu] = false;
}

TEST(idle_choice)
{
	for (u32 machine = 0; machine < 20; machine++) {
		random_machine();
		for (u32 i = 0; i < 600; i++) {
			u32 cpu = fake_below(nr_cpus);
			bool to_idle = fake_below(3);

			if (!fake_below(100)) {
				is_per_node = !is_per_node;
				inside_set_idle_tracking(is_per_node ? SL_IDLE_PER_NODE :
								       SL_IDLE_GLOBAL);
			}
			switch (fake_below(5)) {
			case 0:
				choose();
				break;
			case 1:
				is_per_node ? pick_by_node() : pick();
				break;
			case 2:
				CHECK(scx_bpf_test_and_clear_cpu_idle((s32)cpu) == is_idle[cpu]);
				is_idle[cpu] = false;
				break;
			default:
				inside_update_idle(&sl_core.cpus[cpu], to_idle,
						   to_idle != is_idle[cpu]);
				is_idle[cpu] = to_idle;
			}
			check_masks();
		}
		CHECK(!scx_bpf_test_and_clear_cpu_idle(-1));
		CHECK(!scx_bpf_test_and_clear_cpu_idle((s32)nr_cpus));
		sl_core_exit();
		is_per_node = false;
	}
	CHECK(!fake.alloc_bytes);
}

/*
 * Two siblings that come and go at once can leave their core marked as whole
 * although one is busy. Whoever searches must still come to an end.
 */
TEST(idle_stale_core_mask)
{
	static const u16 pairs[] = { 0, 0, 1, 1 };
	struct sl_config config = { .nr_cpus = 4, .tasks_max = 1, .smt_of_cpu = pairs };

	CHECK(!sl_core_init(&config));
	sl_core.idle.cpus.bits[0] = 0x4; /* CPU 2 alone is idle, */
	sl_core.idle.smt.bits[0] = 0xf;	 /* but both cores look it */
	CHECK(scx_bpf_pick_idle_cpu(scx_bpf_get_possible_cpumask(), SCX_PICK_IDLE_CORE) == 2);
	CHECK(scx_bpf_pick_idle_cpu(scx_bpf_get_possible_cpumask(), SCX_PICK_IDLE_CORE) == -16);
	CHECK(!sl_core.idle.smt.bits[0]);
}

/* What the default choice is for a task that was on @prev, with these CPUs idle. */
static s32 sync_choice(struct sl_task *t, s32 prev, u64 idle)
{
	sl_core.idle.cpus.bits[0] = idle;
	return inside_select_cpu_default(t, prev, SCX_WAKE_SYNC, NULL, 0);
}

/* S25: the waker, on CPU 1, is about to block; CPUs 0 and 1 share a cache. */
TEST(idle_choice_of_a_sync_wakeup)
{
	static const u16 caches[] = { 0, 0, 1, 1 };
	struct sl_config config = { .nr_cpus = 4, .tasks_max = 1, .llc_of_cpu = caches };
	static struct cpumask not_the_wakers = { { 0xd } };
	static struct sl_task t, waker;

	CHECK(!sl_core_init(&config));
	sl_task_setup(&t, 0, 1, "t");
	sl_task_setup(&waker, 0, 2, "waker");
	fake_cpu = 1;
	sl_core.cpus[1].curr = &waker;
	CHECK(sync_choice(&t, 0, 0x1) == 0);
	/* The previous CPU is not of this cache, or busy: the waker's, if any is idle. */
	CHECK(sync_choice(&t, 2, 0x4) == 1);
	CHECK(sync_choice(&t, 2, 0x1) == 1);
	CHECK(sync_choice(&t, 0, 0x8) == 1);
	CHECK(sync_choice(&t, 0, 0) == -16);
	/* As without the flag: the waker exits, a task waits there, or the task may not. */
	waker.p.flags |= PF_EXITING;
	CHECK(sync_choice(&t, 2, 0x1) == 0);
	waker.p.flags = 0;
	sl_core.cpus[1].local.first = &waker;
	CHECK(sync_choice(&t, 2, 0x1) == 0);
	sl_core.cpus[1].local.first = NULL;
	t.p.cpus_ptr = &not_the_wakers;
	CHECK(sync_choice(&t, 2, 0x1) == 0);
	sl_core.cpus[1].curr = NULL;
	t.p.cpus_ptr = &sl_core.possible;
	CHECK(sync_choice(&t, 2, 0x1) == 0);
	fake_cpu = 0;
	sl_core_exit();
}
