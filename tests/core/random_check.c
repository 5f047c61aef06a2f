/* SPDX-License-Identifier: MIT */
/*
 * random_check.c - options, records, and what must be true of a core at rest.
 *
 * Called by random_ops.c; random_check_all() while no CPU is in the core.
 *
 * Read next: core/dsq.c, whose trees are checked here.
 */
#include "random_run.h"

/* ---- records: per task RUN and STOP alternate, and add up ---------------- */

static struct model_task *task_of_record(s32 pid)
{
	struct sl_task *t = __atomic_load_n(&fake.by_pid[pid], __ATOMIC_ACQUIRE);

	return (struct model_task *)t;
}

static void check_wait(struct model_task *t)
{
	u64 age_ns = fake_now_ns() - t->arrive_ns;

	CHECK(t->core.wait_ns_max <= t->core.wait_ns, "[%d] longest %llu of %llu", t->core.p.pid,
	      t->core.wait_ns_max, t->core.wait_ns);
	CHECK(t->core.wait_ns <= age_ns, "[%d] waited %llu ns in %llu ns", t->core.p.pid,
	      t->core.wait_ns, age_ns);
	CHECK(t->core.p.se.sum_exec_runtime <= age_ns, "[%d] ran %llu ns in %llu ns", t->core.p.pid,
	      t->core.p.se.sum_exec_runtime, age_ns);
}

static void on_record(u8 kind, s32 pid, s32 cpu, u8 flags, u64 arg)
{
	struct model_task *t;

	CHECK(cpu >= 0 && (u32)cpu < run.nr_cpus, "record %d on cpu %d", kind, cpu);
	if (pid <= 0)
		return;
	t = task_of_record(pid);
	CHECK(t, "record %d of unknown [%d]", kind, pid);
	switch (kind) {
	case SL_RECORD_ARRIVE:
		CHECK(!t->has_arrived);
		t->has_arrived = true;
		t->is_woken_on_record = true;
		break;
	case SL_RECORD_WAKE:
		CHECK(t->has_arrived && !t->is_woken_on_record, "[%d]", pid);
		t->is_woken_on_record = true;
		break;
	case SL_RECORD_RUN:
		CHECK(t->has_arrived && t->is_woken_on_record, "[%d]", pid);
		CHECK(!t->is_on_record, "[%d] runs twice", pid);
		t->is_on_record = true;
		break;
	case SL_RECORD_STOP:
		CHECK(t->is_on_record, "[%d] stops, but did not run", pid);
		t->is_on_record = false;
		t->stopped_ns += arg;
		if (flags == SL_STOP_BLOCKED)
			t->is_woken_on_record = false;
		CHECK(t->stopped_ns == t->core.p.se.sum_exec_runtime,
		      "[%d] records add up to %llu of %llu ns", pid, t->stopped_ns,
		      t->core.p.se.sum_exec_runtime);
		check_wait(t);
		break;
	}
}

/* ---- queues -------------------------------------------------------------- */

/* Return: tasks in the tree below @t, in order. */
static u32 check_tree(const struct sl_task *t, const struct sl_task **before)
{
	u32 nr = 1;

	if (!t)
		return 0;
	CHECK(!t->left || t->left->parent == t);
	CHECK(!t->right || t->right->parent == t);
	nr += check_tree(t->left, before);
	CHECK(*before == t->prev, "the tree and the list disagree");
	*before = t;
	return nr + check_tree(t->right, before);
}

/* Count @q's tasks in @places, by slot. */
static void check_queue(struct sl_dsq *q, u8 *places)
{
	const struct sl_task *before = NULL;
	struct sl_task *t;
	u32 nr = 0;

	for (t = q->first; t; t = t->next) {
		CHECK(t->prev == before && t->dsq == q);
		CHECK(!q->root || !before || !sl_time_before(t->key, before->key));
		CHECK(t->state == SL_TASK_RUNNABLE, "[%d] state %d", t->p.pid, t->state);
		CHECK(!q->is_local || sl_may_run_on(t, q->cpu), "[%d] waits on cpu %d", t->p.pid,
		      q->cpu);
		places[((struct model_task *)t)->slot]++;
		before = t;
		nr++;
	}
	CHECK(q->last == before && q->nr == nr && !q->iterators);
	before = NULL;
	if (q->root)
		CHECK(check_tree(q->root, &before) == nr && !q->root->parent);
}

static void check_cpu(struct sl_cpu *cpu, u8 *places)
{
	struct model_task *t = (struct model_task *)cpu->curr;

	CHECK(!cpu->lock.owner && !cpu->holds_lock && !cpu->is_scheduling);
	CHECK(!cpu->moves && !cpu->migrate && !cpu->nr_kicks && !cpu->nr_inserts);
	CHECK(!cpu->callback && !cpu->direct_task && !cpu->has_deferred);
	CHECK(cpu->idle_ns <= fake_now_ns());
	check_queue(&cpu->local, places);
	if (!t)
		return;
	CHECK(t->core.state == SL_TASK_RUNNING && t->runs_on == cpu->id);
	CHECK(t->core.cpu == cpu->id && t->core.on_cpu);
	places[t->slot]++;
}

static void check_task(struct model_task *t, u32 nr_places)
{
	bool is_held = (t->core.ops_state & SL_OPSS_MASK) == SL_OPSS_QUEUED;
	u32 state = t->core.state;

	nr_places += is_held;
	if (state == SL_TASK_RUNNABLE || state == SL_TASK_RUNNING)
		CHECK(nr_places == 1, "[%d] is in %u places", t->core.p.pid, nr_places);
	else
		CHECK(nr_places == 0 && state == SL_TASK_BLOCKED, "[%d] state %d, %u places",
		      t->core.p.pid, state, nr_places);
	CHECK((t->core.ops_state & SL_OPSS_MASK) != SL_OPSS_QUEUEING);
	CHECK((t->core.ops_state & SL_OPSS_MASK) != SL_OPSS_DISPATCHING);
	CHECK(t->core.p.scx.ddsp_dsq_id == SCX_DSQ_INVALID);
	CHECK(state == SL_TASK_RUNNING || (t->runs_on == -1 && !t->core.on_cpu));
	CHECK(state == SL_TASK_BLOCKED || t->nr_announced == t->nr_woken || t->core.is_blocking,
	      "[%d]", t->core.p.pid);
	if (sl_core.is_loaded && !sl_is_bypassed()) {
		CHECK((t->seen == SEEN_RUN) == (state == SL_TASK_RUNNING) &&
			      (t->seen == SEEN_OFF) == (state == SL_TASK_BLOCKED),
		      "[%d] state %d, the policy believes %d", t->core.p.pid, state, t->seen);
		CHECK(t->core.in_custody == t->in_custody, "[%d]", t->core.p.pid);
	} else {
		CHECK(!is_held && !t->core.in_custody);
	}
}

/* Context: no CPU is in the core. */
void random_check_all(void)
{
	u8 places[RANDOM_TASKS_MAX] = { 0 };
	u64 ran_ns = 0;

	for (u32 i = 0; i < run.nr_cpus; i++)
		check_cpu(&sl_core.cpus[i], places);
	check_queue(&sl_core.global, places);
	for (u32 i = 0; i < SL_DSQ_BUCKETS; i++) {
		for (struct sl_dsq *q = sl_core.dsqs[i]; q; q = q->next)
			check_queue(q, places);
	}
	for (u32 i = 0; i < run.nr_tasks; i++) {
		if (!run.slots[i])
			continue;
		check_task(run.slots[i], places[i]);
		ran_ns += run.slots[i]->core.p.se.sum_exec_runtime;
	}
	for (u32 i = 0; i < run.nr_cpus; i++)
		ran_ns += sl_core.cpus[i].idle_ns;
	CHECK(ran_ns <= fake_now_ns() * run.nr_cpus,
	      "tasks and idle CPUs took more time than there was");
}

/* A policy that starts knows nothing. */
void random_forget_seen(void)
{
	pthread_mutex_lock(&run.slots_lock);
	for (u32 i = 0; i < run.nr_tasks; i++) {
		if (!run.slots[i])
			continue;
		run.slots[i]->seen = SEEN_OFF;
		run.slots[i]->in_custody = false;
	}
	pthread_mutex_unlock(&run.slots_lock);
}

/* ---- options and report -------------------------------------------------- */

static void on_panic(void)
{
	fake.is_verbose = true;
	sl_dump();
}

static void find_policy(const char *name)
{
	for (u32 i = 0; i < nr_random_policies; i++) {
		if (!strcmp(random_policies[i].name, name))
			run.policy = &random_policies[i];
	}
	if (run.policy)
		return;
	fprintf(stderr, "error: no policy %s\n", name);
	exit(2);
}

void random_options(int argc, char **argv)
{
	run.seed = 1;
	for (int i = 2; i + 1 < argc; i += 2) {
		u64 value = strtoull(argv[i + 1], NULL, 10);

		if (!strcmp(argv[i], "--seed"))
			run.seed = value;
		else if (!strcmp(argv[i], "--cpus"))
			run.nr_cpus = (u32)value;
		else if (!strcmp(argv[i], "--tasks"))
			run.nr_tasks = (u32)value;
		else if (!strcmp(argv[i], "--rounds"))
			run.nr_rounds = (u32)value;
		else if (!strcmp(argv[i], "--round-ms"))
			run.round_ms = (u32)value;
	}
	if (argc < 2 || argc % 2 || run.nr_tasks > RANDOM_TASKS_MAX || run.nr_cpus > FAKE_CPUS_MAX) {
		fprintf(stderr, "usage: random_ops POLICY [--seed N] [--cpus N] "
				"[--tasks N] [--rounds N] [--round-ms N]\n");
		exit(2);
	}
	find_policy(argv[1]);
	fake_init(run.seed, true);
	fake.on_record = on_record;
	fake.on_panic = on_panic;
	snprintf(fake.replay, sizeof(fake.replay),
		 "%s %s --seed %llu --cpus %u --tasks %u --rounds %u --round-ms %u", argv[0],
		 argv[1], run.seed, run.nr_cpus, run.nr_tasks, run.nr_rounds, run.round_ms);
	printf("%s\n", fake.replay);
	fflush(stdout);
	run.next_pid = 1;
	run.nr_masks = 16;
	for (u32 i = 0; i < 16; i++) {
		for (u32 cpu = 0; cpu < run.nr_cpus; cpu++) {
			if (i >> (cpu % 4) & 1)
				run.masks[i].bits[cpu / 64] |= 1UL << (cpu % 64);
		}
	}
	/* With fewer CPUs than four some patterns would be empty. */
	if (run.nr_cpus < 4)
		run.nr_masks = 1U << run.nr_cpus;
	pthread_mutex_init(&run.slots_lock, NULL);
	pthread_mutex_init(&run.switch_lock, NULL);
	pthread_mutex_init(&run.park_lock, NULL);
	pthread_cond_init(&run.park_changed, NULL);
}

void random_report(void)
{
	static const char *const names[NR_COUNTS] = {
		"enqueue", "dequeue", "dispatch", "moved", "timer",	 "kick",
		"custody", "last",    "direct",	  "stale", "reenqueued",
	};
	u64 nr_kicks = 0;

	for (u32 i = 0; i < run.nr_cpus; i++)
		nr_kicks += fake.cpus[i].nr_kicks;
	printf("steps %llu spawned %llu reused %llu switched %llu failures %llu "
	       "kicks %llu",
	       run.nr_steps, run.nr_spawned, run.nr_reused, run.nr_switched, run.nr_failures,
	       nr_kicks);
	for (u32 i = 0; i < NR_COUNTS; i++)
		printf(" %s %llu", names[i], random_counts[i]);
	printf("\n");
}
