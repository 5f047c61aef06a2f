/* SPDX-License-Identifier: MIT */
/*
 * unit_races.c - two CPUs at one moment, in the order that once went wrong.
 *
 * The threads of random_ops.c meet by chance. Here one thread plays both CPUs,
 * and the second acts exactly where it hurts: in a callback of the first, or
 * just before the first takes a lock.
 *
 * Read next: core/enqueue.c.
 */
#include "unit.h"

#define DSQ 1

static bool has_acted;

/* ---- a task is made runnable after another CPU has read the clock -------- */

static struct unit_task *sleeper;

static void wake_late(sl_lock_t *lock)
{
	s32 cpu = fake_cpu;

	if (has_acted || lock != &sl_core.cpus[1].lock)
		return;
	has_acted = true;
	fake_cpu = 0;
	fake.now_ns += 500;
	here_start(&sleeper->core, SCX_WAKE_FORK, 0);
	fake_cpu = cpu;
}

TEST(race_wake_after_the_clock)
{
	static const struct cpumask second = { { 2 } };

	unit_machine(2);
	sleeper = unit_attach(1);
	sleeper->core.p.cpus_ptr = &second;
	sleeper->core.p.nr_cpus_allowed = 1;
	fake.now_ns = 1000;
	fake_before_lock = wake_late;
	sl_host_kick(1);
	unit_step(1);
	fake_before_lock = NULL;
	CHECK(has_acted && sl_core.cpus[1].curr == &sleeper->core);
	CHECK(!sleeper->core.wait_ns && !sleeper->core.wait_ns_max, "waited %llu ns",
	      sleeper->core.wait_ns);
	unit_run_to_end();
	unit_end();
}

/* ---- a task is changed between its choice and its first instruction ------ */

TEST(race_change_before_the_switch)
{
	struct sl_task *t;

	unit_machine(2);
	unit_start(1);
	fake_cpu = unit_tasks[0].core.cpu;
	t = here_schedule(SL_WHY_RESCHED);
	CHECK(t == &unit_tasks[0].core);
	fake.now_ns += 700;
	fake_cpu = !fake_cpu;
	sl_task_set_weight(t, 300);
	CHECK(!t->p.se.sum_exec_runtime, "%llu ns before it ran", t->p.se.sum_exec_runtime);
	fake_cpu = t->cpu;
	here_switched(NULL);
	fake.now_ns += 30;
	sl_task_set_weight(t, 200);
	CHECK(t->p.se.sum_exec_runtime == 30);
	unit_run_to_end();
	unit_end();
}

/* ---- a queue is destroyed between its finding and its locking ------------ */

static void destroy_late(sl_lock_t *lock)
{
	struct sl_dsq *q = inside_find_dsq(sl_this_cpu(), DSQ);

	if (!q || lock != &q->lock)
		return;
	fake_before_lock = NULL;
	has_acted = true;
	scx_bpf_destroy_dsq(DSQ);
	/* Its memory is another queue's at once. */
	CHECK(!scx_bpf_create_dsq(DSQ + 1, -1));
	CHECK(inside_find_dsq(sl_this_cpu(), DSQ + 1) == q);
}

static void simple_enqueue(struct task_struct *p, u64 flags)
{
	scx_bpf_dsq_insert(p, DSQ, SCX_SLICE_DFL, flags);
}

static s32 simple_init(void)
{
	return scx_bpf_create_dsq(DSQ, -1);
}

TEST(race_destroyed_queue)
{
	struct sched_ext_ops ops = { .name = "destroyed",
				     .init = simple_init,
				     .enqueue = simple_enqueue };
	static const struct cpumask first = { { 1 } };
	struct unit_task *t;

	unit_machine(1);
	CHECK(!unit_enable(&ops));
	t = unit_attach(2);
	t->core.p.cpus_ptr = &first;
	t->core.p.nr_cpus_allowed = 1;
	fake_before_lock = destroy_late;
	here_start(&t->core, SCX_WAKE_FORK, 0);
	CHECK(has_acted && fake.nr_failures == 1);
	CHECK(strstr(fake.failure_msg, "non-existent DSQ 0x1"), "%s", fake.failure_msg);
	CHECK(fake.failure_pid == 1);
	CHECK(scx_bpf_dsq_nr_queued(DSQ + 1) == 0);
	unit_run_to_end();
	unit_end();
}

/* ---- a queue's first task ends before the queue's lock is taken ---------- */

static struct sl_task *first_now;

/* The one that was first has been taken, has ended, and is free memory. */
static void first_has_ended(sl_lock_t *lock)
{
	struct sl_dsq *q = inside_find_dsq(sl_this_cpu(), DSQ);

	if (!first_now || !q || lock != &q->lock)
		return;
	smp_store_release(&q->first, first_now);
	first_now = NULL;
	has_acted = true;
}

static void first_dispatch(s32 cpu, struct task_struct *prev)
{
	struct sl_dsq *q = inside_find_dsq(sl_this_cpu(), DSQ);
	struct sl_task *ended;

	(void)cpu;
	(void)prev;
	if (!has_acted && q->first) {
		ended = aligned_alloc(64, (sizeof(*ended) + 63) & ~63UL);
		first_now = q->first;
		smp_store_release(&q->first, ended);
		free(ended);
	}
	scx_bpf_dsq_move_to_local(DSQ);
}

TEST(race_first_of_a_queue_is_freed)
{
	struct sched_ext_ops ops = { .name = "first",
				     .init = simple_init,
				     .enqueue = simple_enqueue,
				     .dispatch = first_dispatch };
	struct unit_task *t;

	unit_machine(2);
	CHECK(!unit_enable(&ops));
	for (s32 cpu = 0; cpu < 2; cpu++)
		CHECK(scx_bpf_test_and_clear_cpu_idle(cpu));
	t = unit_start(2);
	fake_before_lock = first_has_ended;
	sl_host_kick(0);
	unit_step(0);
	fake_before_lock = NULL;
	CHECK(has_acted && sl_core.cpus[0].curr == &t->core);
	CHECK(!fake.nr_failures);
	unit_run_to_end();
	unit_end();
}

/* ---- a task is taken from the policy after it was dispatched ------------- */

static u32 nr_enqueued;

static void keep_enqueue(struct task_struct *p, u64 flags)
{
	(void)p;
	(void)flags;
	nr_enqueued++;
}

/* The verdict is of the task's first turn; the change gives it a second. */
static void stale_dispatch(s32 cpu, struct task_struct *prev)
{
	struct task_struct *p = bpf_task_from_pid(1);

	(void)prev;
	if (has_acted || cpu != 0)
		return;
	has_acted = true;
	CHECK(scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0));
	fake_cpu = 1;
	sl_task_set_weight(&unit_tasks[0].core, 50);
	fake_cpu = 0;
}

TEST(race_stale_turn)
{
	struct sched_ext_ops ops = { .name = "stale",
				     .enqueue = keep_enqueue,
				     .dispatch = stale_dispatch };
	struct unit_task *t;

	unit_machine(2);
	CHECK(!unit_enable(&ops));
	t = unit_attach(3);
	t->core.cpu = 1;
	/* Nobody is idle, so it goes to the policy. */
	CHECK(scx_bpf_test_and_clear_cpu_idle(0));
	CHECK(scx_bpf_test_and_clear_cpu_idle(1));
	here_start(&t->core, SCX_WAKE_FORK, 0);
	CHECK(nr_enqueued == 1 && t->core.cpu == 1);
	sl_host_kick(0);
	unit_step(0);
	CHECK(has_acted && nr_enqueued == 2);
	CHECK(!sl_core.cpus[0].curr, "S21: that verdict was about another turn");
	CHECK((t->core.ops_state & SL_OPSS_MASK) == SL_OPSS_QUEUED);
	CHECK(!fake.nr_failures);
	sl_policy_disable(false);
	unit_run_to_end();
	unit_end();
}

/* ---- a verdict comes so late that the memory is another task's ----------- */

static const struct cpumask third = { { 4 } };

/* CPU 0's verdict is still in its buffer. CPU 1 runs the task to its end. */
static void overtake(struct task_struct *p)
{
	struct unit_task *t = &unit_tasks[0];

	fake_cpu = 1;
	unit_step(1);
	CHECK(sl_core.cpus[1].curr == &t->core);
	unit_step(1);
	CHECK(t->has_exited && !t->core.is_attached);
	t->has_exited = false;
	t->nr_ticks_left = 1;
	sl_task_setup(&t->core, 0, 2, "next");
	WRITE_ONCE(p->cpus_ptr, &third);
	WRITE_ONCE(p->nr_cpus_allowed, 1);
	sl_task_attach(&t->core, NULL);
	here_start(&t->core, SCX_WAKE_FORK, 0);
	CHECK(nr_enqueued == 2 && t->core.cpu == 2);
	fake_cpu = 0;
}

static void late_dispatch(s32 cpu, struct task_struct *prev)
{
	struct task_struct *p = &unit_tasks[0].core.p;

	(void)prev;
	if (cpu == 2 || (cpu == 0 && has_acted))
		return;
	CHECK(scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0));
	if (cpu == 0 && !has_acted) {
		has_acted = true;
		overtake(p);
	}
}

TEST(race_reused_memory)
{
	struct sched_ext_ops ops = { .name = "late",
				     .enqueue = keep_enqueue,
				     .dispatch = late_dispatch };
	struct unit_task *t;

	unit_machine(3);
	CHECK(!unit_enable(&ops));
	t = unit_attach(0);
	t->core.cpu = 1;
	for (s32 cpu = 0; cpu < 3; cpu++)
		CHECK(scx_bpf_test_and_clear_cpu_idle(cpu));
	here_start(&t->core, SCX_WAKE_FORK, 0);
	sl_host_kick(0);
	unit_step(0);
	CHECK(has_acted && nr_enqueued == 2);
	CHECK(!fake.nr_failures, "%s", fake.failure_msg);
	CHECK(!sl_core.cpus[0].curr, "that verdict was about another task");
	CHECK((t->core.ops_state & SL_OPSS_MASK) == SL_OPSS_QUEUED);
	sl_policy_disable(false);
	unit_run_to_end();
	unit_end();
}

/* ---- a CPU goes idle while another one queues a task for anybody --------- */

static struct unit_task *queued;
static s32 idler; /* the CPU that goes idle meanwhile; -1: none */

static void anybody_enqueue(struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

	scx_bpf_dsq_insert(p, DSQ, SCX_SLICE_DFL, enq_flags);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	if (idler < 0 || has_acted)
		return;
	/* It asks once: the task is not queued yet. */
	has_acted = true;
	fake_cpu = idler;
	CHECK(!here_schedule(SL_WHY_RESCHED));
	fake_cpu = 0;
}

/* CPU 0 has its own task; this one comes to it, for any CPU. */
static void start_for_anybody(void)
{
	queued->core.cpu = 0;
	here_start(&queued->core, SCX_WAKE_FORK, 0);
}

static void anybody_dispatch(s32 cpu, struct task_struct *prev)
{
	(void)prev;
	scx_bpf_dsq_move_to_local(DSQ);
	if (cpu != 1 || idler != -1 || has_acted)
		return;
	has_acted = true;
	fake_cpu = 0;
	start_for_anybody();
	fake_cpu = 1;
}

static struct sched_ext_ops anybody_ops = {
	.name = "anybody",
	.init = simple_init,
	.enqueue = anybody_enqueue,
	.dispatch = anybody_dispatch,
};

/* CPU 0 runs a task, CPU 1 has just been claimed, so the policy sees none idle. */
static void one_busy_one_claimed(void)
{
	unit_machine(2);
	CHECK(!unit_enable(&anybody_ops));
	unit_start(3);
	fake_cpu = 0;
	sl_host_kick(0);
	unit_step(0);
	CHECK(sl_core.cpus[0].curr == &unit_tasks[0].core);
	queued = unit_attach(1);
	scx_bpf_test_and_clear_cpu_idle(1);
	fake_take_kick(1);
	fake_cpu = 0;
}

/* No CPU is kicked for the task: as on Linux it waits until one schedules. */
static void expect_the_bubble(void)
{
	CHECK(has_acted && inside_find_dsq(&sl_core.cpus[0], DSQ)->first == &queued->core);
	CHECK(!fake.cpus[1].is_kicked && !sl_core.cpus[1].curr);
	fake_cpu = 0;
	scx_bpf_kick_cpu(1, SCX_KICK_IDLE);
	unit_turns(1);
	CHECK(sl_core.cpus[1].nr_switches == 1);
	unit_run_to_end();
	unit_end();
}

/* What it looked at was empty, and the other one could not see that it looked. */
TEST(race_queueing_before_a_cpu_is_idle)
{
	has_acted = true;
	one_busy_one_claimed();
	has_acted = false;
	idler = -1;
	fake_cpu = 1;
	CHECK(!here_schedule(SL_WHY_RESCHED));
	expect_the_bubble();
}

/* The policy looked for an idle CPU, the CPU asked it, and then the task is queued. */
TEST(race_going_idle_before_a_task_is_queued)
{
	has_acted = true;
	one_busy_one_claimed();
	has_acted = false;
	idler = 1;
	start_for_anybody();
	expect_the_bubble();
}

/* ---- a policy comes while another CPU wakes a task ----------------------- */

static u32 nr_locks;

/* The waker has chosen a CPU without the policy; now the policy is there. */
static void complete_late(sl_lock_t *lock)
{
	(void)lock;
	if (++nr_locks != 2)
		return;
	has_acted = true;
	fake_before_lock = NULL;
	inside_set_bypass(false);
}

static s32 first_select_cpu(struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	(void)p;
	(void)prev_cpu;
	(void)wake_flags;
	return 0;
}

TEST(race_policy_comes_while_one_wakes)
{
	struct sched_ext_ops ops = { .name = "comes",
				     .enqueue = keep_enqueue,
				     .select_cpu = first_select_cpu };
	struct unit_task *t;

	unit_machine(2);
	CHECK(!unit_enable(&ops));
	t = unit_attach(1);
	inside_set_bypass(true);
	fake_before_lock = complete_late;
	here_start(&t->core, SCX_WAKE_FORK, 0);
	fake_before_lock = NULL;
	CHECK(has_acted && nr_enqueued == 1, "S16: a default of a policy that chooses itself");
	sl_policy_disable(false);
	unit_run_to_end();
	unit_end();
}

/* ---- a policy fails on one CPU while another one begins to ask it -------- */

static void fail_early(sl_lock_t *lock)
{
	if (lock != &sl_core.cpus[1].lock)
		return;
	has_acted = true;
	fake_before_lock = NULL;
	fake_cpu = 1;
	scx_error(NULL, "as soon as it was asked");
	fake_cpu = 0;
}

TEST(race_failure_while_a_policy_comes)
{
	struct sched_ext_ops ops = { .name = "fails", .enqueue = keep_enqueue };

	unit_machine(2);
	unit_start(3);
	fake_before_lock = fail_early;
	CHECK(!unit_enable(&ops));
	fake_before_lock = NULL;
	CHECK(has_acted && fake.nr_failures == 1);
	CHECK(sl_is_bypassed(), "S30: it is asked although it has failed");
	unit_run_to_end();
	CHECK(!nr_enqueued);
	unit_end();
}
