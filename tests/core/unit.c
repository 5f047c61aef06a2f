/* SPDX-License-Identifier: MIT */
/*
 * unit.c - runs one test by name, and plays a small machine for it.
 *
 * Read next: unit_policy.c, which uses the machine most.
 */
#include "unit.h"

#define TESTS_MAX 128
#define TICK_NS 1000000

static struct {
	const char *name;
	void (*test)(void);
} tests[TESTS_MAX];
static u32 nr_tests;
static u64 core_bytes; /* what the core itself holds */

struct unit_task unit_tasks[UNIT_TASKS_MAX];
u32 unit_nr_tasks;

void unit_add_test(const char *name, void (*test)(void))
{
	CHECK(nr_tests < TESTS_MAX);
	tests[nr_tests].name = name;
	tests[nr_tests++].test = test;
}

void unit_machine(u32 nr_cpus)
{
	struct sl_config config = { .nr_cpus = nr_cpus, .tasks_max = UNIT_TASKS_MAX };

	CHECK(!sl_core_init(&config));
	core_bytes = fake.alloc_bytes;
}

int unit_enable(struct sched_ext_ops *ops)
{
	static struct sl_policy policy;

	policy = (struct sl_policy){ .ops = ops,
				     .sites = __start_sl_map_sites,
				     .sites_end = __stop_sl_map_sites };
	return sl_policy_enable(&policy, false);
}

struct unit_task *unit_attach(u32 nr_ticks)
{
	struct unit_task *t = &unit_tasks[unit_nr_tasks++];

	CHECK(unit_nr_tasks <= UNIT_TASKS_MAX);
	t->nr_ticks_left = nr_ticks;
	sl_task_setup(&t->core, unit_nr_tasks - 1, (s32)unit_nr_tasks, "unit");
	fake.by_pid[unit_nr_tasks] = &t->core;
	sl_task_attach(&t->core, NULL);
	return t;
}

struct unit_task *unit_start(u32 nr_ticks)
{
	struct unit_task *t = unit_attach(nr_ticks);

	here_start(&t->core, SCX_WAKE_FORK, 0);
	return t;
}

static void schedule(struct unit_task *prev, enum sl_why why)
{
	struct unit_task *next = (struct unit_task *)here_schedule(why);

	if (next && next == prev)
		return;
	here_switched(prev ? &prev->core : NULL);
	if (next)
		next->nr_runs++;
	if (prev && why == SL_WHY_EXIT) {
		prev->has_exited = true;
		sl_task_detach(&prev->core);
	}
}

void unit_step(s32 cpu)
{
	struct unit_task *t = (struct unit_task *)sl_core.cpus[cpu].curr;
	bool is_kicked;

	fake_cpu = cpu;
	is_kicked = fake_take_kick(cpu);
	if (t && !t->nr_ticks_left) {
		schedule(t, SL_WHY_EXIT);
	} else if (is_kicked) {
		schedule(t, SL_WHY_RESCHED);
	} else if (t) {
		t->nr_ticks_left--;
		if (here_tick())
			schedule(t, SL_WHY_RESCHED);
	}
}

void unit_turns(u32 nr_turns)
{
	for (u32 i = 0; i < nr_turns; i++) {
		for (u32 cpu = 0; cpu < sl_core.nr_cpus; cpu++)
			unit_step((s32)cpu);
		fake.now_ns += TICK_NS;
	}
	fake_cpu = 0;
}

void unit_run_to_end(void)
{
	for (u32 i = 0; i < unit_nr_tasks; i++) {
		for (u32 turns = 0; !unit_tasks[i].has_exited; turns++) {
			CHECK(turns < 10000, "[%u] never ends", i + 1);
			unit_turns(1);
		}
	}
}

void unit_end(void)
{
	sl_policy_disable(false);
	/* Masks stay as long as the core: a task may have one. */
	for (struct sl_masks *block = sl_core.masks->next; block; block = block->next)
		core_bytes += sizeof(*block);
	CHECK(fake.alloc_bytes == core_bytes, "the policy left %lld bytes",
	      (long long)(fake.alloc_bytes - core_bytes));
	sl_core_exit();
	CHECK(!fake.alloc_bytes, "%llu bytes left", fake.alloc_bytes);
}

int main(int argc, char **argv)
{
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	if (argc < 2) {
		fprintf(stderr, "usage: unit list | unit NAME [SEED]\n");
		return 2;
	}
	for (u32 i = 0; i < nr_tests; i++) {
		if (!strcmp(argv[1], "list")) {
			puts(tests[i].name);
			continue;
		}
		if (strcmp(argv[1], tests[i].name))
			continue;
		fake_init(seed, false);
		snprintf(fake.replay, sizeof(fake.replay), "%s %s %llu", argv[0], argv[1], seed);
		tests[i].test();
		return 0;
	}
	if (!strcmp(argv[1], "list"))
		return 0;
	fprintf(stderr, "error: no test %s\n", argv[1]);
	return 2;
}
