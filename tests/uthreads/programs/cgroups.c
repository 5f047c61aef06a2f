/* SPDX-License-Identifier: MIT */
/*
 * cgroups.c - groups are made, changed and moved between while threads run and the policy changes.
 * POLICY CPUS [KNOB]; `refused` as third: the policy is that of test_cgroups.py.
 */
#include "check.h"

#define NR_WALKERS 4
#define ROUNDS 48

static ut_cgroup *outer, *on_cpu[2], *all, *limited;
static struct ut_config config;
static ut_sem has_begun = UT_SEM_INIT(0), may_end = UT_SEM_INIT(0);
static long rounds;
static int must_end, noted_cpu, nr_walking;

static ut_cgroup *group_of(ut_id id)
{
	struct ut_attr attr;

	CHECK_IS(ut_getattr(id, &attr), 0);
	return attr.cgroup;
}

static ut_id start(ut_fn fn, ut_cgroup *group)
{
	struct ut_attr attr = UT_ATTR_INIT;
	ut_id id;

	attr.cgroup = group;
	CHECK_IS(ut_create(&id, &attr, fn, NULL), 0);
	return id;
}

static void *stay(void *arg)
{
	CHECK_IS(ut_sem_post(&has_begun), 0);
	CHECK_IS(ut_sem_wait(&may_end), 0);
	return arg;
}

/* A child begins in its creator's group. */
static void *create(void *arg)
{
	ut_id id = start(stay, NULL);

	CHECK(group_of(ut_self()) == limited && group_of(id) == limited);
	CHECK_IS(ut_sem_post(&may_end), 0);
	CHECK_IS(ut_join(id, NULL), 0);
	return arg;
}

/* Where its group lets it, as soon as it is there; and what it asked for is kept. */
static void *walk(void *arg)
{
	struct ut_attr asked = UT_ATTR_INIT;
	uint64_t first = 1;

	asked.affinity = &first;
	asked.affinity_words = 1;
	for (int i = 0; i < ROUNDS; i++) {
		int to = i % (int)config.nr_cpus % 2;

		CHECK_IS(ut_cgroup_move(ut_self(), on_cpu[to]), 0);
		CHECK(config.nr_cpus == 1 || ut_cpu() == to);
		CHECK(group_of(ut_self()) == on_cpu[to]);
		if (i % 8 == 0)
			CHECK_IS(ut_setattr(ut_self(), &asked), to ? -EINVAL : 0);
		CHECK(config.nr_cpus == 1 || ut_cpu() == to);
		CHECK_IS(ut_cgroup_move(ut_self(), i % 3 ? all : NULL), 0);
		if (i % 16 == 15)
			CHECK_IS(ut_cpu(), 0);
	}
	__atomic_sub_fetch(&nr_walking, 1, __ATOMIC_SEQ_CST);
	return arg;
}

/* What was stopped with a thread-local address stays on its CPU until it makes way. */
static void *note(void *arg)
{
	while (!__atomic_load_n(&must_end, __ATOMIC_SEQ_CST)) {
		for (int i = 0; i < 100; i++)
			__atomic_store_n(&noted_cpu, ut_cpu(), __ATOMIC_SEQ_CST);
		ut_yield();
		__atomic_add_fetch(&rounds, 1, __ATOMIC_SEQ_CST);
	}
	return arg;
}

static void carry(ut_id id, int to)
{
	long from;

	CHECK_IS(ut_cgroup_move(id, on_cpu[to]), 0);
	from = __atomic_load_n(&rounds, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&rounds, __ATOMIC_SEQ_CST) < from + 2)
		ut_yield();
	CHECK_IS(__atomic_load_n(&noted_cpu, __ATOMIC_SEQ_CST), config.nr_cpus == 1 ? 0 : to);
}

static void make_groups(void)
{
	uint64_t cpus[20] = { 1ULL << config.nr_cpus };
	ut_cgroup *none = NULL;

	CHECK_IS(ut_cgroup_create(&outer, NULL, "outer", 0), 0);
	CHECK_IS(ut_cgroup_create(&none, outer, "none", 10001), -EINVAL);
	CHECK_IS(ut_cgroup_create(&none, outer, NULL, 1), -EINVAL);
	CHECK_IS(ut_cgroup_create(&on_cpu[0], outer, "first", 300), 0);
	CHECK_IS(ut_cgroup_create(&on_cpu[1], outer, "second", 10000), 0);
	CHECK_IS(ut_cgroup_create(&all, outer, "all", 1), 0);
	CHECK_IS(ut_cgroup_create(&limited, NULL, "limited", 100), 0);
	CHECK_IS(ut_cgroup_set_cpus(on_cpu[0], cpus, 1), -EINVAL);
	CHECK_IS(ut_cgroup_set_cpus(outer, cpus, 1), -EBUSY);
	for (unsigned i = 0; i < 2 && i < config.nr_cpus; i++) {
		cpus[0] = 1ULL << i;
		CHECK_IS(ut_cgroup_set_cpus(on_cpu[i], cpus, 20), 0);
	}
	cpus[19] = 1;
	CHECK_IS(ut_cgroup_set_cpus(all, cpus, 20), -EINVAL);
	CHECK_IS(ut_cgroup_set_weight(limited, 0), -EINVAL);
	CHECK_IS(ut_cgroup_set_weight(limited, 50), 0);
	CHECK_IS(ut_cgroup_set_bandwidth(limited, 0, 1), -EINVAL);
	CHECK_IS(ut_cgroup_set_bandwidth(limited, 50000, 20000), 0);
}

static void use_groups(void)
{
	ut_cgroup *none = NULL, *root = group_of(ut_self());
	struct ut_attr attr = UT_ATTR_INIT;
	uint64_t first = 1;
	ut_id id = start(stay, limited);

	CHECK(group_of(id) == limited && root != limited);
	CHECK_IS(ut_sem_wait(&has_begun), 0);
	/* Threads are in groups without groups in them. */
	CHECK_IS(ut_cgroup_create(&none, limited, "none", 1), -EBUSY);
	CHECK_IS(ut_cgroup_set_cpus(limited, &first, 1), -EBUSY);
	CHECK_IS(ut_cgroup_move(id, outer), -EBUSY);
	attr.cgroup = outer;
	CHECK_IS(ut_create(&id, &attr, stay, NULL), -EBUSY);
	ut_preempt_disable();
	CHECK_IS(ut_cgroup_move(ut_self(), all), -EPERM);
	ut_preempt_enable();
	CHECK_IS(ut_sem_post(&may_end), 0);
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_IS(ut_cgroup_move(id, all), -ESRCH);
	id = start(create, limited);
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_IS(ut_sem_wait(&has_begun), 0);
	CHECK_IS(ut_cgroup_create(&none, limited, "below", 1), 0);
}

static void move_about(void)
{
	ut_id walkers[NR_WALKERS], carried;
	nr_walking = NR_WALKERS;
	for (int i = 0; i < NR_WALKERS; i++)
		walkers[i] = start(walk, all);
	carried = start(note, on_cpu[0]);
	for (int i = 0; i < 20 || __atomic_load_n(&nr_walking, __ATOMIC_SEQ_CST); i++) {
		ut_cgroup *made;

		carry(carried, i % (int)config.nr_cpus % 2);
		CHECK_IS(ut_cgroup_set_weight(all, 1 + i % 200), 0);
		if (i < 20)
			CHECK_IS(ut_cgroup_create(&made, outer, "more", 1), 0);
		if (i % 4 == 0 && config.policy)
			CHECK_IS(ut_set_policy(i % 8 ? config.policy : NULL, config.sets), 0);
	}
	__atomic_store_n(&must_end, 1, __ATOMIC_SEQ_CST);
	CHECK_IS(ut_join(carried, NULL), 0);
	for (int i = 0; i < NR_WALKERS; i++)
		CHECK_IS(ut_join(walkers[i], NULL), 0);
}

/* The policy lets no thread into a group of weight 77, and wants none of 66. */
static void be_refused(void)
{
	ut_cgroup *group = NULL;

	CHECK_IS(ut_cgroup_create(&group, NULL, "g", 66), -12);
	CHECK(!group);
	CHECK_IS(ut_cgroup_create(&group, NULL, "g", 77), 0);
	CHECK_IS(ut_cgroup_set_bandwidth(group, 50000, 20000), 0);
	CHECK_IS(ut_cgroup_move(ut_self(), group), -13);
	CHECK(group_of(ut_self()) != group);
	CHECK(!strcmp(ut_error_text(), ""));
}

int main(int argc, char **argv)
{
	ut_cgroup *group;

	config = check_config(argc, argv);
	CHECK_IS(ut_cgroup_create(&group, NULL, "g", 100), -EPERM);
	config.sets = argc > 3 && strcmp(argv[3], "refused") ? (const char *const *)&argv[3] : NULL;
	check_init(&config);
	if (argc > 3 && !config.sets) {
		be_refused();
	} else {
		make_groups();
		use_groups();
		move_about();
		while (!ut_cgroup_create(&group, NULL, "more", 1))
			;
		CHECK_IS(ut_cgroup_create(&group, NULL, "g", 1), -ENOSPC);
	}
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
