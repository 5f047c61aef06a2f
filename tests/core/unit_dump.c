/* SPDX-License-Identifier: MIT */
/*
 * unit_dump.c - everything as text, at any moment.
 *
 * Read next: core/dump.c.
 */
#include "unit.h"

TEST(dump)
{
	unit_machine(2);
	unit_start(1);
	unit_start(1);
	unit_start(1);
	unit_turns(1);
	fake.nr_lines = 0;
	sl_dump();
	CHECK(fake.nr_lines > 4, "%u lines", fake.nr_lines);
	CHECK(strstr(fake.last_line, "task unit["), "%s", fake.last_line);
	unit_run_to_end();
	unit_end();
}

static void end_the_dump(void)
{
	fake_in_wait = NULL;
	WRITE_ONCE(sl_core.nr_dumps, 0ULL);
}

/* Another CPU has found the task, and has not yet written its line. */
TEST(dump_keeps_the_tasks_that_it_found)
{
	unit_machine(1);
	unit_attach(1);
	WRITE_ONCE(sl_core.nr_dumps, 1ULL);
	fake_in_wait = end_the_dump;
	sl_task_detach(&unit_tasks[0].core);
	CHECK(!fake_in_wait, "it is freed while a dump reads it");
	unit_end();
}

static void held_enqueue(struct task_struct *p, u64 enq_flags)
{
	(void)p;
	(void)enq_flags;
}

static void held_dispatch(s32 cpu, struct task_struct *prev)
{
	(void)cpu;
	(void)prev;
	scx_bpf_dsq_insert(&unit_tasks[0].core.p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
}

/* An interrupt asks for it while this CPU holds whatever it may hold. */
TEST(dump_waits_for_nobody)
{
	struct sched_ext_ops ops = { .name = "holder",
				     .enqueue = held_enqueue,
				     .dispatch = held_dispatch };
	struct unit_task *t;

	unit_machine(1);
	CHECK(!unit_enable(&ops));
	t = unit_start(1);
	inside_lock_tasks();
	sl_lock(&sl_core.cpus[0].lock);
	sl_lock(&sl_core.global.lock);
	sl_lock(&sl_core.tables_lock);
	sl_dump();
	CHECK(strstr(fake.last_line, "task unit[1] runnable") && strstr(fake.last_line, " held"),
	      "%s", fake.last_line);
	sl_unlock(&sl_core.tables_lock);
	sl_unlock(&sl_core.global.lock);
	sl_unlock(&sl_core.cpus[0].lock);
	inside_unlock_tasks();
	unit_step(0);
	here_prepare_block(&t->core);
	WRITE_ONCE(t->core.wait_for, "a door");
	CHECK(!here_schedule(SL_WHY_BLOCK));
	here_switched(&t->core);
	sl_dump();
	CHECK(strstr(fake.last_line, "blocked") && strstr(fake.last_line, " for a door"), "%s",
	      fake.last_line);
	CHECK(here_wake(&t->core, 0, 0));
	unit_step(0);
	sl_dump();
	CHECK(strstr(fake.last_line, "running") && !strstr(fake.last_line, " for a door") &&
		      !strstr(fake.last_line, " held"),
	      "%s", fake.last_line);
	unit_run_to_end();
	unit_end();
}

/* ---- what a policy that has failed writes down (S41) ---------------------- */

static u32 nr_dumps;

static void full_dump(struct scx_dump_ctx *ctx)
{
	CHECK(ctx->kind == SCX_EXIT_ERROR_BPF && !strcmp(ctx->reason, "scx_bpf_error"));
	CHECK(ctx->at_ns == SL_UPTIME_NS + fake.now_ns);
	nr_dumps++;
	scx_bpf_dump("0123456789\n0123456789\n");
}

static void full_exit(struct scx_exit_info *info)
{
	(void)info;
	CHECK(nr_dumps == 1, "ops.exit() comes after the dump");
	scx_bpf_dump("too late");
}

TEST(dump_of_a_policy_has_a_length)
{
	struct sched_ext_ops ops = {
		.name = "full", .dump = full_dump, .exit = full_exit, .exit_dump_len = 15
	};

	unit_machine(1);
	unit_attach(1);
	CHECK(!unit_enable(&ops));
	fake.nr_lines = 0;
	scx_bpf_error("gives up");
	/* Where the next call of a host ends. */
	sl_task_detach(&unit_tasks[0].core);
	CHECK(nr_dumps == 1 && fake.nr_lines == 2, "%u lines", fake.nr_lines);
	CHECK(!strcmp(fake.last_line, "~~~~ TRUNCATED ~~~~"), "%s", fake.last_line);
	unit_end();
}

static void leave_runnable(struct task_struct *p, u64 enq_flags)
{
	(void)p;
	(void)enq_flags;
	scx_bpf_exit(3, "leaves");
}

/* As on Linux, an exit that is no error has no dump. */
TEST(a_policy_that_leaves_writes_nothing_down)
{
	struct sched_ext_ops ops = { .name = "full", .dump = full_dump, .runnable = leave_runnable };

	nr_dumps = 0;
	unit_machine(1);
	CHECK(!unit_enable(&ops));
	unit_start(1);
	unit_run_to_end();
	CHECK(fake.failure_kind == SCX_EXIT_UNREG_BPF && !nr_dumps);
	unit_end();
}
