/* SPDX-License-Identifier: MIT */
/*
 * unit_cgroup.c - the tree of cgroups: what a policy hears of it, and finds in it (S44);
 * objects and trees that a policy makes.
 *
 * Read next: unit_policy.c, a policy's life without cgroups.
 */
#include "unit.h"

static char story[1000];
static s32 init_result, prep_result;

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} stored SEC(".maps");

#define STORED(cgrp, flags) \
	((u64 *)bpf_cgrp_storage_get(&stored, (cgrp), NULL, (flags)))

static void tell(const char *word, const struct cgroup *cgrp)
{
	u32 used = (u32)strlen(story);

	snprintf(story + used, sizeof(story) - used, "%s:%s ", word,
		 cgrp->level ? cgrp->kn->name : "/");
}

static void expect_story(const char *expected)
{
	CHECK(!strcmp(story, expected), "\n\tgot:      %s\n\texpected: %s", story, expected);
	story[0] = 0;
}

static s32 told_init(struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	CHECK(args->bw_period_us == 100000 && args->bw_quota_us == ~0ULL);
	tell("init", cgrp);
	*STORED(cgrp, BPF_LOCAL_STORAGE_GET_F_CREATE) = args->weight;
	return init_result;
}

static void told_exit(struct cgroup *cgrp)
{
	tell("exit", cgrp);
}

static s32 told_prep(struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	(void)p;
	tell("prep", from);
	tell("to", to);
	return prep_result;
}

static void told_move(struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	CHECK(scx_bpf_task_cgroup(p) == to);
	tell("move", from);
	tell("to", to);
}

static void told_weight(struct cgroup *cgrp, u32 weight)
{
	CHECK(weight == 300);
	tell("weight", cgrp);
}

static void told_bandwidth(struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us)
{
	CHECK(period_us == 1000 && quota_us == 200 && burst_us == 30);
	tell("bandwidth", cgrp);
}

static s32 told_init_task(struct task_struct *p, struct scx_init_task_args *args)
{
	(void)p;
	tell("task", args->cgroup);
	return 0;
}

static void told_enqueue(struct task_struct *p, u64 flags)
{
	tell("enqueue", scx_bpf_task_cgroup(p));
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, flags);
}

static void told_quiescent(struct task_struct *p, u64 flags)
{
	(void)flags;
	tell("quiescent", scx_bpf_task_cgroup(p));
}

static struct sched_ext_ops told_ops = {
	.name = "told",
	.cgroup_init = told_init,
	.cgroup_exit = told_exit,
	.cgroup_prep_move = told_prep,
	.cgroup_move = told_move,
	.cgroup_set_weight = told_weight,
	.cgroup_set_bandwidth = told_bandwidth,
	.init_task = told_init_task,
	.enqueue = told_enqueue,
	.quiescent = told_quiescent,
};

static struct cgroup *make(struct cgroup *parent, const char *name)
{
	struct cgroup *made = NULL;

	CHECK(!sl_cgroup_create(parent, name, 200, &made));
	return made;
}

/* Parents come first and leave last; a task hears of its cgroup when it is new. */
TEST(cgroups_come_and_go_with_the_policy)
{
	struct cgroup *a, *b, *none = NULL;
	struct unit_task *t;

	unit_machine(1);
	a = make(NULL, "a");
	b = make(a, "b");
	t = unit_attach(1);
	CHECK(!sl_task_set_cgroup(&t->core, b));
	CHECK(!unit_enable(&told_ops), "%s", sl_report().why);
	expect_story("init:/ init:a init:b task:b ");
	CHECK(*STORED(b, 0) == 200 && *STORED(bpf_cgroup_from_id(1), 0) == 100);
	make(b, "c");
	expect_story("init:c ");
	init_result = -12;
	CHECK(sl_cgroup_create(b, "d", 100, &none) == -12 && !none);
	expect_story("init:d ");
	CHECK(!bpf_cgroup_from_id(5));
	init_result = 0;
	sl_policy_disable(false);
	expect_story("exit:c exit:b exit:a exit:/ ");
	/* That of one cgroup fails: the policy is not loaded, and hears no more. */
	init_result = -5;
	CHECK(unit_enable(&told_ops) == -5);
	CHECK(!strcmp(sl_report().why, "ops.cgroup_init() failed (-5)"), "%s", sl_report().why);
	expect_story("init:/ ");
	init_result = 0;
	sl_task_detach(&t->core);
	unit_end();
}

TEST(cgroups_are_found_and_removed)
{
	struct cgroup *a, *b, *root;
	struct unit_task *t;

	unit_machine(1);
	CHECK(!unit_enable(&told_ops));
	a = make(NULL, "a");
	b = make(a, "b");
	root = bpf_cgroup_from_id(1);
	CHECK(root && root->level == 0 && a->level == 1 && b->level == 2);
	CHECK(bpf_cgroup_from_id(b->kn->id) == b && a->kn->id != b->kn->id);
	CHECK(bpf_cgroup_ancestor(b, 0) == root && bpf_cgroup_ancestor(b, 1) == a);
	CHECK(bpf_cgroup_ancestor(b, 2) == b && !bpf_cgroup_ancestor(b, 3));
	CHECK(!bpf_cgroup_ancestor(b, -1) && !bpf_cgroup_from_id(0));
	CHECK(!bpf_cgroup_from_id(4) && !bpf_cgroup_from_id(~0ULL));
	expect_story("init:/ init:a init:b ");
	t = unit_attach(1);
	CHECK(!sl_task_set_cgroup(&t->core, b));
	story[0] = 0;
	CHECK(sl_cgroup_remove(a) == -16 && sl_cgroup_remove(b) == -16);
	CHECK(sl_cgroup_remove(NULL) == -16);
	expect_story("");
	CHECK(!sl_task_set_cgroup(&t->core, NULL));
	expect_story("prep:b to:/ move:b to:/ ");
	CHECK(STORED(b, 0) && !sl_cgroup_remove(b));
	expect_story("exit:b ");
	/* A stale pointer finds nothing, and does no harm. */
	CHECK(!bpf_cgroup_from_id(b->kn->id));
	CHECK(!STORED(b, BPF_LOCAL_STORAGE_GET_F_CREATE));
	CHECK(bpf_cgroup_ancestor(b, 1) == a && !sl_cgroup_remove(a));
	/* One that comes does not get the place of another. */
	CHECK(make(NULL, "e")->kn->id == 4 && !strcmp(b->kn->name, "b"));
	for (u32 i = 4; i < SL_CGROUPS_MAX; i++)
		make(NULL, "f");
	CHECK(sl_cgroup_create(NULL, "g", 100, &a) == -28);
	story[0] = 0;
	sl_task_detach(&t->core);
	unit_end();
}

/* As when the weight of a task changes (S17), it is taken off its queue meanwhile. */
TEST(a_task_is_moved_wherever_it_is)
{
	struct unit_task *runs, *waits;
	struct cgroup *a;

	unit_machine(1);
	CHECK(!unit_enable(&told_ops));
	a = make(NULL, "a");
	runs = unit_start(3);
	unit_turns(1);
	waits = unit_start(1);
	story[0] = 0;
	CHECK(!sl_task_set_cgroup(&waits->core, a));
	expect_story("prep:/ to:a quiescent:/ move:/ to:a enqueue:a ");
	CHECK(!sl_task_set_cgroup(&runs->core, a));
	expect_story("prep:/ to:a quiescent:/ move:/ to:a ");
	/* Where it is already, and where the policy does not want it. */
	CHECK(!sl_task_set_cgroup(&runs->core, a));
	expect_story("");
	prep_result = -16;
	CHECK(sl_task_set_cgroup(&runs->core, NULL) == -16 && runs->core.p.cgroups->dfl_cgrp == a);
	expect_story("prep:a to:/ ");
	prep_result = 0;
	unit_run_to_end();
	unit_end();
}

TEST(a_cgroup_has_a_weight_and_a_bandwidth)
{
	struct cgroup *a;

	unit_machine(1);
	CHECK(!unit_enable(&told_ops));
	a = make(NULL, "a");
	story[0] = 0;
	sl_cgroup_set_weight(a, 300);
	sl_cgroup_set_weight(a, 300);
	sl_cgroup_set_bandwidth(a, 1000, 200, 30);
	sl_cgroup_set_bandwidth(a, 1000, 200, 30);
	expect_story("weight:a bandwidth:a ");
	unit_end();
}

static const struct cpuset *cpuset_in(const struct cgroup *cgrp)
{
	return cgrp->subsys[cpuset_cgrp_id] ?
		       container_of(cgrp->subsys[cpuset_cgrp_id], struct cpuset, css) :
		       NULL;
}

/* CPUs 0 to 3 as bits. */
static u64 bits_of(const struct cpumask *mask)
{
	return mask->bits[0] & 15;
}

static int set_cpus(struct cgroup *cgrp, u64 bits)
{
	struct cpumask mask = { .bits = { bits } };

	return sl_cgroup_set_cpus(cgrp, &mask);
}

TEST(a_cgroup_has_the_cpus_of_those_above_it)
{
	struct cgroup *root, *a, *b, *a1, *a2, *late;

	unit_machine(4);
	root = bpf_cgroup_from_id(1);
	a = make(NULL, "a");
	b = make(NULL, "b");
	a1 = make(a, "a1");
	a2 = make(a, "a2");
	/* The root's is always there, and full. */
	CHECK(cpuset_in(root) && bits_of(cpuset_in(root)->cpus_allowed) == 15);
	CHECK(!cpuset_in(a) && !cpuset_in(a1));
	CHECK(!set_cpus(a, 7));
	/* The controller is enabled for all children of a cgroup. */
	CHECK(cpuset_in(a) && cpuset_in(b) && !cpuset_in(a1));
	CHECK(cpuset_in(a)->css.cgroup == a);
	CHECK(bits_of(cpuset_in(a)->cpus_allowed) == 7 &&
	      bits_of(cpuset_in(a)->effective_cpus) == 7);
	CHECK(bits_of(cpuset_in(b)->cpus_allowed) == 0 &&
	      bits_of(cpuset_in(b)->effective_cpus) == 15);
	CHECK(!set_cpus(a1, 12));
	CHECK(bits_of(cpuset_in(a1)->cpus_allowed) == 12 &&
	      bits_of(cpuset_in(a1)->effective_cpus) == 4);
	CHECK(bits_of(cpuset_in(a2)->effective_cpus) == 7);
	late = make(a, "late");
	CHECK(cpuset_in(late) && bits_of(cpuset_in(late)->effective_cpus) == 7);
	/* None in common: those above. */
	CHECK(!set_cpus(a1, 8) && bits_of(cpuset_in(a1)->effective_cpus) == 7);
	CHECK(!set_cpus(a, 8) && bits_of(cpuset_in(a1)->effective_cpus) == 8);
	CHECK(!set_cpus(a, 0) && bits_of(cpuset_in(a2)->effective_cpus) == 15);
	/* No CPU of this machine. */
	CHECK(set_cpus(a, 16) == -22 && bits_of(cpuset_in(a)->cpus_allowed) == 0);
	unit_end();
}

static void told_mask(struct task_struct *p, const struct cpumask *mask)
{
	u32 used = (u32)strlen(story);

	(void)p;
	snprintf(story + used, sizeof(story) - used, "mask:%llx ",
		 (unsigned long long)bits_of(mask));
}

TEST(a_task_has_the_cpus_of_its_cgroup)
{
	static const struct cpumask low = { .bits = { 3 } }, high = { .bits = { 8 } };
	struct sched_ext_ops masks = { .name = "masks", .set_cpumask = told_mask };
	struct cgroup *a, *b;
	struct unit_task *t;

	unit_machine(4);
	CHECK(!unit_enable(&masks));
	a = make(NULL, "a");
	b = make(NULL, "b");
	t = unit_start(10);
	story[0] = 0;
	CHECK(!set_cpus(a, 6));
	expect_story("");
	CHECK(!sl_task_set_cgroup(&t->core, a));
	expect_story("mask:6 ");
	/* What is asked for is cut, and kept. */
	CHECK(!sl_task_set_affinity(&t->core, &low));
	expect_story("mask:2 ");
	CHECK(sl_task_set_affinity(&t->core, &high) == -22);
	expect_story("");
	CHECK(!set_cpus(a, 5));
	expect_story("mask:1 ");
	CHECK(!set_cpus(a, 12));
	expect_story("mask:c ");
	CHECK(!sl_task_set_cgroup(&t->core, b));
	expect_story("mask:3 ");
	CHECK(!sl_task_set_cgroup(&t->core, NULL));
	/* As the one before. */
	expect_story("");
	unit_run_to_end();
	unit_end();
}

TEST(a_task_keeps_its_cpus_where_there_is_no_memory_for_others)
{
	const struct cpumask asked = { { 1ULL << 40 | 3ULL << 50 } };
	struct unit_task *t;
	struct cgroup *a;

	unit_machine(64);
	a = make(NULL, "a");
	CHECK(!set_cpus(a, 1ULL << 40 | 1));
	t = unit_attach(1);
	CHECK(!sl_task_set_cgroup(&t->core, a));
	for (u64 i = 1; sl_core.masks->nr < SL_MASKS_PER_BLOCK - 1; i++)
		CHECK(!sl_task_set_affinity(&t->core, &(struct cpumask){ { i | 1 } }));
	/* There is room for what it asks for, and none for what it would get. */
	fake.alloc_fail_after = 0;
	CHECK(sl_task_set_affinity(&t->core, &asked) == -ENOMEM);
	CHECK(t->core.p.cpus_ptr->bits[0] == 1 && t->core.user_mask->bits[0] & 1);
	fake.alloc_fail_after = ~0ULL;
	CHECK(!sl_task_set_affinity(&t->core, &asked));
	CHECK(t->core.p.cpus_ptr->bits[0] == 1ULL << 40 &&
	      t->core.user_mask->bits[0] == asked.bits[0]);
	CHECK(sl_task_set_affinity(&t->core, &(struct cpumask){ { 2 } }) == -EINVAL);
	CHECK(sl_task_set_affinity(&t->core, &(struct cpumask){ { 0, 1 } }) == -EINVAL);
	here_start(&t->core, SCX_WAKE_FORK, 0);
	unit_run_to_end();
	unit_end();
}

/* It asks, and moves, while it stays on one CPU: what comes of both holds afterwards. */
TEST(a_bound_task_gets_its_cpus_when_it_is_free)
{
	static const struct cpumask low = { .bits = { 3 } }, only = { .bits = { 1 } };
	struct sched_ext_ops masks = { .name = "masks", .set_cpumask = told_mask };
	struct unit_task *t;
	struct cgroup *a;

	unit_machine(4);
	CHECK(!unit_enable(&masks));
	a = make(NULL, "a");
	CHECK(!set_cpus(a, 6) && !sl_cgroup_has_tasks(a));
	t = unit_start(10);
	unit_turns(1);
	story[0] = 0;
	sl_task_bind(&t->core, &only);
	expect_story("mask:1 ");
	CHECK(!sl_task_set_affinity(&t->core, &low));
	CHECK(!sl_task_set_cgroup(&t->core, a) && sl_cgroup_has_tasks(a));
	expect_story("");
	sl_task_bind(&t->core, NULL);
	expect_story("mask:2 ");
	unit_run_to_end();
	unit_end();
}

static void curious_running(struct task_struct *p)
{
	scx_bpf_task_cgroup(&unit_tasks[p->pid == 1].core.p);
}

static s32 early_init_task(struct task_struct *p, struct scx_init_task_args *args)
{
	CHECK(scx_bpf_task_cgroup(p) == args->cgroup);
	return 0;
}

/* Linux says so, too: only an operation's own task is sure not to move meanwhile. */
TEST(the_cgroup_of_another_task_is_not_told)
{
	struct sched_ext_ops curious = { .name = "curious", .running = curious_running };
	struct sched_ext_ops early = { .name = "early", .init_task = early_init_task };

	for (u32 i = 0; i < 2; i++) {
		unit_machine(1);
		CHECK(!unit_enable(i ? &early : &curious));
		unit_start(1);
		unit_run_to_end();
		CHECK(fake.nr_failures == 1);
		CHECK(!strcmp(fake.failure_msg, "scx_bpf_task_cgroup() called on a task "
						"not being operated on"),
		      "%s", fake.failure_msg);
		fake.nr_failures = 0;
		unit_end();
	}
}

/* ---- objects, and trees of them ----------------------------------------------- */

struct thing {
	u64 key;
	struct bpf_rb_node node;
};

static struct bpf_rb_root tree;

static bool is_less(struct bpf_rb_node *a, const struct bpf_rb_node *b)
{
	return container_of(a, struct thing, node)->key / 100 <
	       container_of(b, struct thing, node)->key / 100;
}

/* Any order of insertions and removals gives what comes out of a sorted array. */
TEST(a_tree_keeps_its_nodes_in_order)
{
	struct bpf_rb_root other = { 0 };
	struct thing *things[40];
	u64 last = 0;
	u32 nr = 0;

	unit_machine(1);
	CHECK(!bpf_rbtree_first(&tree));
	for (u32 i = 0; i < 40; i++) {
		things[i] = bpf_obj_new(struct thing);
		CHECK(things[i] && !things[i]->key);
		/* Of equal ones the first stays first. */
		things[i]->key = fake_below(8) * 100 + i;
		CHECK(!bpf_rbtree_add(&tree, &things[i]->node, is_less));
		CHECK(bpf_rbtree_add(&tree, &things[i]->node, is_less) == -22);
		CHECK(!bpf_rbtree_remove(&other, &things[i]->node));
	}
	for (u32 i = 0; i < 40; i += 3) {
		CHECK(bpf_rbtree_remove(&tree, &things[i]->node) == &things[i]->node);
		CHECK(!bpf_rbtree_remove(&tree, &things[i]->node));
		things[i]->key = things[i]->key / 100 * 100 + 99;
		CHECK(!bpf_rbtree_add(&tree, &things[i]->node, is_less));
	}
	while (bpf_rbtree_first(&tree)) {
		struct thing *thing = container_of(bpf_rbtree_remove(&tree, bpf_rbtree_first(&tree)),
						   struct thing, node);

		CHECK(thing->key >= last, "%llu after %llu", thing->key, last);
		last = thing->key;
		if (++nr % 2)
			bpf_obj_drop(thing);
	}
	CHECK(nr == 40);
	/* Half of the objects are left, and freed with the policy. */
	CHECK(!unit_enable(&told_ops));
	story[0] = 0;
	unit_end();
}
