/* SPDX-License-Identifier: MIT */
/*
 * unit_policy.c - a policy's life: loading, being watched, unloading.
 *
 * Read next: unit_timers.c; unit_misuse.c, all that a policy may do wrong.
 */
#include "unit.h"

#define MS 1000000ULL

/* ---- loading ------------------------------------------------------------- */

static s32 init_result;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct bpf_timer);
} eager_timers SEC(".maps");

static s32 eager_init(void)
{
	u32 key = 0;

	CHECK(!scx_bpf_create_dsq(1, -1));
	CHECK(!bpf_timer_init(bpf_map_lookup_elem(&eager_timers, &key), &eager_timers,
			      CLOCK_MONOTONIC));
	return init_result;
}

TEST(enable_failures_leave_nothing)
{
	struct sched_ext_ops ops = { .init = eager_init };

	unit_machine(2);
	CHECK(unit_enable(&ops) == -22); /* no name */
	memset(ops.name, 'x', sizeof(ops.name));
	CHECK(unit_enable(&ops) == -22); /* one without an end */
	strcpy(ops.name, "eager");
	ops.timeout_ms = 30001;
	CHECK(unit_enable(&ops) == -7);
	ops.timeout_ms = 0;
	ops.dispatch_max_batch = SL_DISPATCH_BATCH_MAX + 1;
	CHECK(unit_enable(&ops) == -7);
	ops.dispatch_max_batch = 0;
	init_result = -5;
	CHECK(unit_enable(&ops) == -5);
	CHECK(!sl_core.is_loaded && sl_is_bypassed() && !sl_core.ops.init);
	CHECK(scx_bpf_dsq_nr_queued(1) == -2);
	init_result = 5;
	CHECK(unit_enable(&ops) == -22); /* not an error number */
	init_result = 0;
	CHECK(!unit_enable(&ops));
	CHECK(unit_enable(&ops) == -16);
	CHECK(inside_watchdog_period_ns() == 15000 * MS);
	unit_end();
}

/* ---- a policy loaded and unloaded under tasks ---------------------------- */

static char story[1000];

static void tell(const char *word, const struct task_struct *p)
{
	u32 used = (u32)strlen(story);

	snprintf(story + used, sizeof(story) - used, "%s%d ", word, p->pid);
}

static s32 told_init_task(struct task_struct *p, struct scx_init_task_args *args)
{
	tell(args->fork ? "fork" : "init", p);
	return 0;
}

static void told_enable(struct task_struct *p)
{
	tell("enable", p);
}
static void told_disable(struct task_struct *p)
{
	tell("disable", p);
}
static void told_running(struct task_struct *p)
{
	tell("running", p);
}

static void told_exit_task(struct task_struct *p, struct scx_exit_task_args *args)
{
	tell(args->cancelled ? "cancel" : "exit", p);
}

static void told_runnable(struct task_struct *p, u64 flags)
{
	(void)flags;
	tell("runnable", p);
}

static void told_enqueue(struct task_struct *p, u64 flags)
{
	tell("enqueue", p);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, flags);
}

static struct sched_ext_ops told_ops = {
	.name = "told",
	.init_task = told_init_task,
	.enable = told_enable,
	.disable = told_disable,
	.exit_task = told_exit_task,
	.running = told_running,
	.runnable = told_runnable,
	.enqueue = told_enqueue,
};

static void expect_story(const char *expected)
{
	CHECK(!strcmp(story, expected), "\n\tgot:      %s\n\texpected: %s", story, expected);
	story[0] = 0;
}

TEST(enable_under_tasks)
{
	unit_machine(1);
	unit_start(3); /* runs */
	unit_turns(1);
	unit_start(2);	/* waits */
	unit_attach(1); /* has not started */
	CHECK(!unit_enable(&told_ops));
	expect_story("init1 enable1 init2 enable2 init3 enable3 "
		     "runnable1 running1 runnable2 enqueue2 ");
	sl_policy_disable(false);
	expect_story("disable1 exit1 disable2 exit2 disable3 exit3 ");
	sl_task_detach(&unit_tasks[2].core);
	unit_tasks[2].has_exited = true;
	unit_run_to_end();
	expect_story("");
	unit_end();
}

static struct sched_ext_ops plain_ops = { .name = "plain" };

/* A turn that began 10 ns after a tick, where the host says that this happens. */
TEST(a_turn_that_began_late_ends_at_its_tick)
{
	struct sl_task *t;

	unit_machine(1);
	CHECK(!unit_enable(&plain_ops));
	t = &unit_start(1)->core;
	unit_step(0);
	CHECK(sl_core.cpus[0].curr == t);
	sl_set_slice(t, 1000);
	fake.now_ns += 989;
	CHECK(!sl_tick(sl_this_cpu(), fake.now_ns, 10) && sl_slice(t) == 11);
	fake.now_ns += 1;
	CHECK(sl_tick(sl_this_cpu(), fake.now_ns, 10) && !sl_slice(t));
	unit_run_to_end();
	unit_end();
}

TEST(a_task_that_never_starts_is_cancelled)
{
	unit_machine(1);
	CHECK(!unit_enable(&told_ops));
	unit_attach(1);
	sl_task_detach(&unit_tasks[0].core);
	expect_story("fork1 enable1 disable1 cancel1 ");
	unit_end();
}

/* ---- the watchdog -------------------------------------------------------- */

static void miser_enqueue(struct task_struct *p, u64 flags)
{
	(void)p;
	(void)flags;
}

static u32 nr_exits;
static void miser_exit(struct scx_exit_info *info)
{
	CHECK(info->kind == SCX_EXIT_ERROR_STALL);
	nr_exits++;
}

TEST(watchdog)
{
	struct sched_ext_ops ops = {
		.name = "miser", .timeout_ms = 100, .enqueue = miser_enqueue, .exit = miser_exit
	};

	unit_machine(2);
	CHECK(!unit_enable(&ops));
	CHECK(inside_watchdog_period_ns() == 50 * MS);
	/* The host is asked for it as for any timer, and again each time. */
	CHECK(fake.timer_at_ns == 50 * MS);
	fake_cpu = 1;
	/* The first finds both CPUs idle and is not enqueued; the third waits. */
	for (u32 i = 0; i < 3; i++)
		unit_start(300);
	unit_turns(100);
	sl_timers_run();
	CHECK(!fake.nr_failures, "not longer than the timeout yet");
	CHECK(fake.timer_at_ns == 150 * MS);
	sl_timers_run();
	CHECK(!fake.nr_failures && fake.timer_at_ns == 150 * MS);
	unit_turns(1);
	inside_watchdog();
	CHECK(fake.nr_failures == 1 && nr_exits == 1);
	CHECK(fake.failure_kind == SCX_EXIT_ERROR_STALL);
	CHECK(fake.failure_pid == 3, "blames [%d]", fake.failure_pid);
	CHECK(!strcmp(fake.failure_msg, "unit[3] failed to run for 0.101s, held by "
					"the policy, which has not dispatched it"),
	      "%s", fake.failure_msg);
	unit_run_to_end();
	inside_watchdog();
	CHECK(fake.nr_failures == 1);
	unit_end();
}

/* What was waited before the last turn is neither waiting time nor a stall. */
TEST(a_wait_begins_where_the_last_turn_ended)
{
	struct sched_ext_ops ops = { .name = "patient", .timeout_ms = 4 };
	struct unit_task *t;

	unit_machine(1);
	CHECK(!unit_enable(&ops));
	t = unit_start(9);
	unit_step(0);
	unit_turns(5);
	unit_start(2);
	sl_set_slice(&t->core, 0);
	sl_host_kick(0);
	unit_step(0);
	CHECK(t->core.state == SL_TASK_RUNNABLE && !t->core.wait_ns);
	inside_watchdog();
	CHECK(!fake.nr_failures, "%s", fake.failure_msg);
	unit_run_to_end();
	CHECK(t->core.wait_ns == 2 * MS, "waited %llu ns", t->core.wait_ns);
	unit_end();
}

/* ---- S18: a running task that loses its CPU ------------------------------- */

#define KEEP_DSQ 9

static s32 keep_init(void)
{
	return scx_bpf_create_dsq(KEEP_DSQ, -1);
}

static void keep_enqueue(struct task_struct *p, u64 flags)
{
	scx_bpf_dsq_insert(p, KEEP_DSQ, SCX_SLICE_DFL, flags);
}

/* Prefers who runs to who waits, as fair policies may. */
static void keep_dispatch(s32 cpu, struct task_struct *prev)
{
	(void)cpu;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED))
		scx_bpf_task_set_slice(prev, SCX_SLICE_DFL);
	else
		scx_bpf_dsq_move_to_local(KEEP_DSQ);
}

TEST(a_cpu_that_loses_its_task_takes_another)
{
	struct sched_ext_ops ops = { .name = "keep",
				     .init = keep_init,
				     .enqueue = keep_enqueue,
				     .dispatch = keep_dispatch };
	static const struct cpumask first = { { 1 } }, second = { { 2 } };
	struct unit_task *runs, *waits;

	unit_machine(2);
	CHECK(!unit_enable(&ops));
	runs = unit_attach(50);
	waits = unit_attach(1);
	runs->core.p.cpus_ptr = waits->core.p.cpus_ptr = &first;
	runs->core.p.nr_cpus_allowed = waits->core.p.nr_cpus_allowed = 1;
	here_start(&runs->core, SCX_WAKE_FORK, 0);
	unit_step(0);
	CHECK(sl_core.cpus[0].curr == &runs->core);
	here_start(&waits->core, SCX_WAKE_FORK, 0);
	sl_task_set_affinity(&runs->core, &second);
	unit_step(0);
	CHECK(sl_core.cpus[0].curr == &waits->core,
	      "the CPU went idle beside a task that waits for it");
	unit_run_to_end();
	unit_end();
}

/* ---- attributes, and a task bound where it is ---------------------------- */

#include <scx/task_attr.h>

TEST(attributes)
{
	struct sched_ext_ops ops = { .name = "attributes" };
	struct task_attr given = { .tickets = 7, .given = 1U << TASK_ATTR_TICKETS };
	struct unit_task *t;
	struct task_attr *attr;

	unit_machine(1);
	CHECK(!unit_enable(&ops));
	t = unit_attach(1);
	CHECK(!task_attr(&t->core.p));
	CHECK(!sl_task_give_attrs(&t->core, &given));
	CHECK(task_attr(&t->core.p)->tickets == 7);
	CHECK(!sl_task_set_attr(&t->core, TASK_ATTR_PRIORITY, (u64)-3));
	CHECK(!sl_task_set_attr(&t->core, TASK_ATTR_CREDITS, (u64)-4));
	CHECK(!sl_task_set_attr(&t->core, TASK_ATTR_CAP, 50));
	CHECK(!sl_task_set_attr(&t->core, TASK_ATTR_GROUP, 2));
	CHECK(!sl_task_set_attr(&t->core, TASK_ATTR_DEADLINE, 1ULL << 40));
	CHECK(!sl_task_set_attr(&t->core, TASK_ATTR_BURST, 11));
	attr = task_attr(&t->core.p);
	CHECK(attr->priority == -3 && attr->credits == -4 && attr->tickets == 7 &&
	      attr->cap_percent == 50 && attr->group == 2 && attr->deadline_ns == 1ULL << 40 &&
	      attr->burst_ns == 11);
	CHECK(attr->given == (1U << TASK_ATTR_WEIGHT) - 1);
	CHECK(!sl_task_set_attr(&t->core, TASK_ATTR_WEIGHT, 300));
	CHECK(t->core.p.scx.weight == 300);
	CHECK(sl_task_set_attr(&t->core, TASK_ATTR_WEIGHT, 0) == -22);
	CHECK(sl_task_set_attr(&t->core, TASK_ATTR_WEIGHT, 10001) == -22);
	CHECK(sl_task_set_attr(&t->core, NR_TASK_ATTRS, 1) == -22);
	sl_task_detach(&t->core);
	CHECK(!task_attr(&t->core.p));
	unit_end();
}

static void mover_enqueue(struct task_struct *p, u64 flags)
{
	scx_bpf_dsq_insert(p, 1, SCX_SLICE_DFL, flags);
}

/* Moves everything from queue 1 to queue 2, then takes what it may. */
static void mover_dispatch(s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	(void)cpu;
	(void)prev;
	bpf_for_each(scx_dsq, p, 1, 0)
		CHECK(scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, 2, 0));
	scx_bpf_dsq_move_to_local(2);
}

static s32 mover_init(void)
{
	return scx_bpf_create_dsq(1, -1) | scx_bpf_create_dsq(2, -1);
}

TEST(a_move_does_not_unbind_a_task)
{
	struct sched_ext_ops ops = { .name = "mover",
				     .init = mover_init,
				     .flags = SCX_OPS_ENQ_MIGRATION_DISABLED,
				     .enqueue = mover_enqueue,
				     .dispatch = mover_dispatch };
	struct unit_task *t;

	unit_machine(2);
	CHECK(!unit_enable(&ops));
	t = unit_attach(2);
	t->core.p.migration_disabled = 1;
	CHECK(t->core.cpu == 0);
	here_start(&t->core, SCX_WAKE_FORK, 0);
	unit_step(1);
	CHECK(scx_bpf_dsq_nr_queued(2) == 1 && t->core.cpu == 0);
	CHECK(!sl_core.cpus[1].curr);
	unit_step(0);
	CHECK(sl_core.cpus[0].curr == &t->core);
	unit_run_to_end();
	CHECK(!fake.nr_failures, "%s", fake.failure_msg);
	unit_end();
}

/* ---- memory that was a task's before ------------------------------------- */

/* What a task may inherit: none of it can be seen before it is set anew. */
static void blank_inheritance(struct sl_task *t)
{
	t->ops_state &= SL_OPSS_MASK;
	t->idx = 0;
	t->cpu = 0;
	t->prev = NULL;
	t->next = NULL;
	t->dsq_seq = 0;
}

static void global_enqueue(struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

TEST(setup_of_used_memory)
{
	struct sched_ext_ops ops = { .name = "global", .enqueue = global_enqueue };
	struct unit_task *t;
	struct sl_task fresh, used;
	u64 turns;

	unit_machine(2);
	CHECK(!unit_enable(&ops));
	memset(&fresh, 0, sizeof(fresh));
	sl_task_setup(&fresh, 1, 7, "a name that is too long for a task");
	CHECK(!strcmp(fresh.p.comm, "a name that is "));
	CHECK(!fresh.p.nvcsw && !fresh.p.nivcsw);
	CHECK(fresh.p.prio == 120 && fresh.p.static_prio == 120 && fresh.p.normal_prio == 120,
	      "not those of nice 0");
	t = unit_start(60);
	t->core.p.flags = PF_KTHREAD;
	sl_task_set_weight(&t->core, 77);
	unit_run_to_end();
	turns = t->core.ops_state & ~(u64)SL_OPSS_MASK;
	CHECK(turns && t->core.p.se.sum_exec_runtime);
	sl_task_setup(&t->core, t->core.idx, 7, "a name that is too long for a task");
	CHECK((t->core.ops_state & ~(u64)SL_OPSS_MASK) >= turns);
	used = t->core;
	CHECK(used.p.group_leader == &t->core.p && used.p.real_parent == &t->core.p);
	used.p.group_leader = fresh.p.group_leader;
	used.p.real_parent = fresh.p.real_parent;
	blank_inheritance(&used);
	blank_inheritance(&fresh);
	CHECK(!memcmp(&used, &fresh, sizeof(fresh)));
	unit_end();
}

/* ---- a slice that is set by hand ------------------------------------------- */

/* What a queued task is given, its CPU reads when it chooses the task. */
TEST(a_running_task_whose_slice_is_set_is_the_hosts_business)
{
	struct unit_task *t, *other;

	unit_machine(1);
	t = unit_start(3);
	other = unit_start(3);
	unit_step(0);
	CHECK(sl_core.cpus[0].curr == &t->core);
	scx_bpf_task_set_slice(&other->core.p, 1);
	CHECK(!fake.nr_slice_changes);
	scx_bpf_task_set_slice(&t->core.p, 1);
	CHECK(fake.nr_slice_changes == 1);
	unit_run_to_end();
	unit_end();
}

/* ---- a change of a task that the policy holds ----------------------------- */

static bool is_withheld;

static void withhold_enqueue(struct task_struct *p, u64 enq_flags)
{
	(void)p;
	(void)enq_flags;
}

static void withhold_dispatch(s32 cpu, struct task_struct *prev)
{
	(void)cpu;
	(void)prev;
	if (!is_withheld)
		scx_bpf_dsq_insert(&unit_tasks[0].core.p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
}

/* The new weight may be what the policy waited for: then it has to kick the CPU itself. */
TEST(a_change_kicks_no_cpu)
{
	struct sched_ext_ops ops = { .name = "withhold",
				     .enqueue = withhold_enqueue,
				     .dispatch = withhold_dispatch };
	struct unit_task *t;

	unit_machine(1);
	CHECK(!unit_enable(&ops));
	is_withheld = true;
	CHECK(scx_bpf_test_and_clear_cpu_idle(0));
	t = unit_start(1);
	fake_take_kick(0);
	sl_host_kick(0);
	unit_step(0);
	CHECK(!sl_core.cpus[0].curr && !fake.cpus[0].is_kicked);
	is_withheld = false;
	sl_task_set_weight(&t->core, 50);
	CHECK(!fake.cpus[0].is_kicked);
	sl_host_kick(0);
	unit_step(0);
	CHECK(sl_core.cpus[0].curr == &t->core);
	sl_task_set_weight(&unit_start(1)->core, 50);
	CHECK(!fake.cpus[0].is_kicked);
	sl_policy_disable(false);
	unit_run_to_end();
	unit_end();
}

/* ---- affinity and a disabled migration ----------------------------------- */

TEST(affinity_waits_for_migration)
{
	/* CPU 1; there is no CPU 2. */
	struct cpumask second = { { 2 | 4 } };
	struct unit_task *t, *other;

	unit_machine(2);
	t = unit_attach(30);
	t->core.cpu = 0;
	here_start(&t->core, SCX_WAKE_FORK, 0);
	fake_cpu = t->core.cpu;
	unit_step(fake_cpu);
	CHECK(fake_cpu == 0 && sl_core.cpus[0].curr == &t->core);
	fake_migrate_disable(&t->core);
	fake_migrate_disable(&t->core);
	fake_cpu = 1;
	sl_task_set_affinity(&t->core, &second);
	/* What it is called with may go: a policy reads what the core keeps, at any time. */
	second.bits[0] = 1;
	CHECK(!fake.cpus[0].is_kicked && t->core.p.cpus_ptr->bits[0] == 2);
	CHECK(t->core.p.nr_cpus_allowed == 1);
	/* It makes way, waits, sleeps, is changed, and comes back to CPU 0. */
	other = unit_start(1);
	sl_task_set_affinity(&other->core, &sl_core.possible);
	fake_cpu = 0;
	sl_set_slice(&t->core, 0);
	sl_host_kick(0);
	unit_step(0);
	if (t->core.state == SL_TASK_RUNNABLE)
		sl_task_set_weight(&t->core, 50);
	for (u32 i = 0; sl_core.cpus[0].curr != &t->core; i++) {
		CHECK(i < 100 && t->core.cpu == 0);
		unit_turns(1);
	}
	fake_cpu = 0;
	here_prepare_block(&t->core);
	CHECK(here_schedule(SL_WHY_BLOCK) != &t->core);
	here_switched(&t->core);
	fake_cpu = 1;
	CHECK(here_wake(&t->core, 0, 0) && t->core.cpu == 0);
	unit_step(0);
	CHECK(sl_core.cpus[0].curr == &t->core);
	fake_migrate_enable(&t->core);
	CHECK(!fake.cpus[0].is_kicked);
	fake_migrate_enable(&t->core);
	CHECK(fake.cpus[0].is_kicked);
	unit_step(0);
	CHECK(t->core.cpu == 1 && sl_core.cpus[0].curr != &t->core);
	unit_run_to_end();
	CHECK(t->core.last_cpu == 1);
	unit_end();
}

TEST(equal_affinities_are_one_mask)
{
	enum { NR = 64, NR_MASKS = 3 * SL_MASKS_PER_BLOCK };
	const struct cpumask *kept[NR_MASKS];
	struct unit_task *t;

	unit_machine(NR);
	t = unit_attach(1);
	for (u64 i = 0; i < 2 * NR_MASKS; i++) {
		struct cpumask mask = { { 1 + i % NR_MASKS } };

		/* CPU 64, which this machine has not, is no part of what is asked for. */
		mask.bits[1] = i & 1;
		CHECK(!sl_task_set_affinity(&t->core, &mask));
		CHECK(t->core.p.cpus_ptr->bits[0] == 1 + i % NR_MASKS &&
		      !t->core.p.cpus_ptr->bits[1]);
		if (i < NR_MASKS)
			kept[i] = t->core.p.cpus_ptr;
		CHECK(t->core.p.cpus_ptr == kept[i % NR_MASKS]);
	}
	/* No memory for a block more: only what is kept already can be had. */
	fake.alloc_fail_after = 0;
	CHECK(sl_task_set_affinity(&t->core, &(struct cpumask){ { 1ULL << 63 } }) == -ENOMEM);
	CHECK(t->core.user_mask == t->core.p.cpus_ptr && t->core.user_mask == kept[NR_MASKS - 1]);
	CHECK(!sl_task_set_affinity(&t->core, &(struct cpumask){ { 7 } }));
	CHECK(t->core.p.cpus_ptr == kept[6]);
	fake.alloc_fail_after = ~0ULL;
	here_start(&t->core, SCX_WAKE_FORK, 0);
	unit_run_to_end();
	unit_end();
}
