/* SPDX-License-Identifier: MIT */
/*
 * unit_refused.c - what a policy asks for and cannot have is refused by its name.
 *
 * Read next: unit_misuse.c, all that a policy may do wrong.
 */
#include "unit.h"

static void any_enqueue(struct task_struct *p, u64 flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, flags);
}

static void any_update_idle(s32 cpu, bool is_idle)
{
	(void)cpu, (void)is_idle;
}

/* What only Linux has is refused, with its name; and so is what Linux refuses. */
TEST(what_is_not_supported_is_refused_by_name)
{
	static const struct {
		struct sched_ext_ops ops;
		int err;
		const char *says;
	} refused[] = {
		{ { .flags = 1ULL << 3, .enqueue = any_enqueue },
		  -22,
		  "ops.flags has SCX_OPS_SWITCH_PARTIAL" },
		{ { .flags = SCX_OPS_BUILTIN_IDLE_PER_NODE, .update_idle = any_update_idle },
		  -22,
		  "SCX_OPS_BUILTIN_IDLE_PER_NODE requires CPU idle selection enabled" },
		{ { .flags = 1ULL << 40 | SCX_OPS_ENQ_EXITING },
		  -22,
		  "ops.flags has unknown bits 0x10000000000" },
		{ { .flags = SCX_OPS_ENQ_LAST }, -22, "SCX_OPS_ENQ_LAST requires ops.enqueue()" },
		{ { .hotplug_seq = 3 }, -16, "hotplug seq 3" },
		{ { .timeout_ms = 30001 }, -7, "timeout_ms 30001" },
		{ { .dispatch_max_batch = 513 }, -7, "dispatch_max_batch 513" },
	};
	struct sched_ext_ops all = {
		.name = "all",
		.enqueue = any_enqueue,
		.flags = SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING |
			 SCX_OPS_ENQ_MIGRATION_DISABLED | SCX_OPS_ALLOW_QUEUED_WAKEUP,
	};

	unit_machine(1);
	for (u32 i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct sched_ext_ops ops = refused[i].ops;

		strcpy(ops.name, "refused");
		CHECK(unit_enable(&ops) == refused[i].err, "%s", refused[i].says);
		CHECK(strstr(sl_report().why, refused[i].says), "\"%s\", not \"%s\"",
		      sl_report().why, refused[i].says);
		CHECK(!sl_core.is_loaded && !fake.nr_failures);
	}
	CHECK(!unit_enable(&all), "%s", sl_report().why);
	CHECK(!sl_report().why[0]);
	unit_end();
}

static s32 picky_init_task(struct task_struct *p, struct scx_init_task_args *args)
{
	(void)args;
	p->scx.disallow = p->pid == 2;
	return 0;
}

/* There is no other class that such a task could have. */
TEST(a_disallowed_task_is_an_error)
{
	struct sched_ext_ops ops = { .name = "picky", .init_task = picky_init_task };

	unit_machine(1);
	CHECK(!unit_enable(&ops));
	unit_attach(1);
	CHECK(!fake.nr_failures);
	unit_attach(1);
	CHECK(fake.nr_failures == 1 && fake.failure_pid == 2);
	CHECK(!strcmp(fake.failure_msg, "ops.init_task() set task->scx.disallow for "
					"unit[2] during fork"),
	      "%s", fake.failure_msg);
	sl_policy_disable(false);
	fake.nr_failures = 0;
	CHECK(!unit_enable(&ops));
	CHECK(fake.nr_failures == 1 && fake.failure_pid == 2);
	CHECK(!strcmp(fake.failure_msg, "ops.init_task() set task->scx.disallow for "
					"unit[2]: there is no other scheduling class"),
	      "%s", fake.failure_msg);
	sl_policy_disable(false);
	/* What one policy said is nothing to the next. */
	fake.nr_failures = 0;
	ops.init_task = NULL;
	CHECK(!unit_enable(&ops) && !fake.nr_failures);
	for (u32 i = 0; i < unit_nr_tasks; i++)
		here_start(&unit_tasks[i].core, SCX_WAKE_FORK, 0);
	unit_run_to_end();
	unit_end();
}
