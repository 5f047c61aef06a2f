/* SPDX-License-Identifier: MIT */
/*
 * play.c - tasks of a program arrive, are played by threads, and end.
 *
 * Arrivals and the end of a run come from a hook on CPU 0 (timer.c), as an
 * interrupt would. A task that ends tells its parent.
 *
 * Read next: verbs.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "groups.h"
#include "program_file.h"
#include "runner.h"

struct run run;

/* The first failure is the one that counts. */
void run_fail(const char *kind, s32 pid, const char *fmt, ...)
{
	static u64 is_claimed;
	struct result *r = run.result;
	va_list args;

	if (!sl_cas_u64(&is_claimed, 0, 1))
		return;
	r->status = "failed";
	r->error_kind = kind;
	r->task = pid;
	va_start(args, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, args);
	va_end(args);
}

/* The run is over, even if tasks still run. Context: preemption disabled. */
static void end_now(void)
{
	static u64 is_claimed;
	struct result *r = run.result;

	/* Two CPUs may each have reaped the last thread that the other one waited for. */
	if (!sl_cas_u64(&is_claimed, 0, 1))
		return;
	r->end_ns = sl_host_now_ns();
	ut_stolen_look_everywhere();
	r->taken_ns = READ_ONCE(ut_taken_ns) * ut.nr_cpus;
	for (u32 i = 0; i < ut.nr_cpus; i++) {
		u64 away_ns = READ_ONCE(ut.kthreads[i].away_ns_max);
		u64 late_ns = READ_ONCE(ut.kthreads[i].late_ns_max);

		if (away_ns > r->away_ns_max)
			r->away_ns_max = away_ns;
		if (late_ns > r->timer_late_ns_max)
			r->timer_late_ns_max = late_ns;
	}
	ut_end_all();
}

static void on_last(void)
{
	/* A parent that ended early may leave tasks that are never started. */
	if (run.next_arrival == run.nr_arrivals)
		end_now();
}

static void on_deadlock(const char *text, s32 pid)
{
	if (sl_program_header(run.program)->horizon_ns)
		return; /* servers may wait indefinitely; the hook ends it */
	run_fail("deadlock", pid, "%s", text);
	end_now();
}

static void *play(void *arg)
{
	struct play *me = arg;
	int failed;

	me->player.arrival_ns = ut_now_ns();
	failed = sl_player_run(&me->player);
	if (failed) {
		me->failed = failed;
		run_fail("program", me->thread->core.p.pid, "%s[%d] cannot do op %u: %s",
			 me->thread->core.p.comm, me->thread->core.p.pid, sl_player_pc(&me->player),
			 failed > -1000 ? strerror(-failed) :
			 failed == SL_PLAYER_SPAWNED_OUT ?
					  "it spawns more children than it has" :
			 failed == SL_PLAYER_WAIT_FOR_NONE ?
					  "it waits for children that it never spawned" :
					  "this host has no such verb");
	}
	__atomic_add_fetch(&run.result->nr_exited, 1, __ATOMIC_RELAXED);
	if (me->parent)
		ut_sem_post(&me->parent->ended);
	return NULL;
}

static struct ut_attr attr_of(const struct sl_program_task *task, const struct play *parent)
{
	struct ut_attr attr = UT_ATTR_INIT;

	/* The library's bits are the program's, but for the weight. */
	attr.given = (task->attr_given & 0x1f) |
		     (task->attr_given & (1U << TASK_ATTR_DEADLINE) ? UT_GIVES_DEADLINE : 0) |
		     (task->attr_given & (1U << TASK_ATTR_BURST) ? UT_GIVES_BURST : 0) |
		     UT_GIVES_WEIGHT;
	attr.priority = task->priority;
	attr.tickets = task->tickets;
	attr.credits = task->credits;
	attr.cap_percent = task->cap_percent;
	attr.group = task->group;
	attr.weight = task->weight;
	attr.deadline_ns = task->deadline_ns;
	attr.burst_ns = task->burst_ns;
	attr.is_detached = 1;
	attr.name = sl_program_string(run.program, task->name);
	if (task->group_object)
		attr.cgroup = run.groups[task->group_object - 1];
	else if (parent)
		attr.cgroup = parent->thread->core.p.cgroups->dfl_cgrp;
	else
		attr.cgroup = bpf_cgroup_from_id(1);
	if (task->affinity != SL_PROGRAM_NONE) {
		attr.affinity = (const uint64_t *)(sl_program_values(run.program) + task->affinity);
		attr.affinity_words = task->affinity_words;
	}
	return attr;
}

/**
 * play_start - a task of the program arrives
 * @task: its number
 * @parent: the task that spawned it; NULL: none
 *
 * Context: preemption disabled.
 * Return: 0 or -errno.
 */
int play_start(u32 task, struct play *parent)
{
	const struct sl_program_task *pt = &sl_program_tasks(run.program)[task];
	struct ut_attr attr = attr_of(pt, parent);
	struct play *me = &run.plays[task];
	struct ut_thread *t;
	int err;

	me->player.program = run.program;
	me->player.task = task;
	me->player.ops = &ut_verbs;
	me->player.host = me;
	me->parent = parent;
	t = ut_thread_new_pid(&attr, play, me, (s32)task + 1, &err);
	if (!t)
		return err;
	me->thread = t;
	sl_task_set_nice(&t->core, pt->nice);
	ut_start(t, parent ? parent->thread->core.p.pid : 0);
	return 0;
}

static u64 horizon_ns(void)
{
	u64 end_ns = sl_program_header(run.program)->horizon_ns;

	return end_ns ? end_ns : UT_NEVER;
}

static void set_hook(void)
{
	u64 at_ns = horizon_ns();
	u64 limit_ns = run.options->limit_ns;

	if (limit_ns && limit_ns < at_ns)
		at_ns = limit_ns;
	if (run.next_arrival < run.nr_arrivals) {
		u32 next = run.arrivals[run.next_arrival];
		u64 arrival_ns = sl_program_tasks(run.program)[next].arrival_ns;

		at_ns = arrival_ns < at_ns ? arrival_ns : at_ns;
	}
	ut.hook_ns = events_next_ns() < at_ns ? events_next_ns() : at_ns;
}

/* On CPU 0, at the time that was set. */
static void hook(void)
{
	u64 now_ns = sl_host_now_ns();
	int err = 0;

	if (now_ns >= horizon_ns()) {
		ut.hook_ns = UT_NEVER;
		end_now();
		return;
	}
	if (run.options->limit_ns && now_ns >= run.options->limit_ns) {
		run_fail("limit", 0, "%u of %u tasks had not ended at the limit of %llu ns",
			 run.result->nr_tasks - run.result->nr_exited, run.result->nr_tasks,
			 run.options->limit_ns);
		ut.hook_ns = UT_NEVER;
		end_now();
		return;
	}
	events_until(now_ns);
	while (run.next_arrival < run.nr_arrivals && !err) {
		u32 next = run.arrivals[run.next_arrival];

		if (sl_program_tasks(run.program)[next].arrival_ns > now_ns)
			break;
		run.next_arrival++;
		err = play_start(next, NULL);
	}
	if (err) {
		run_fail("host", (s32)run.next_arrival, "task %u: %s",
			 run.arrivals[run.next_arrival - 1], strerror(-err));
		end_now();
	}
	set_hook();
}

/* Before the policy is loaded, which is told of them then. */
static int prepare_groups(void)
{
	char why[160];

	run.groups = sl_groups_create(run.program, why, sizeof(why));
	return run.groups ? 0 : ut_fail(-EINVAL, "%s", why);
}

static void begin(void)
{
	ut.on_last = on_last;
	ut.on_deadlock = on_deadlock;
	ut.hook = hook;
	set_hook();
}

static void end(void)
{
	struct result *r = run.result;

	for (u32 i = 0; i < ut.nr_cpus; i++)
		r->nr_switches += sl_cpu_report((s32)i).nr_switches;
	for (u32 i = 0; i < ut.nr_cpus; i++) {
		r->clock_ns += ut.kthreads[i].clock_ns;
		r->idle_clock_ns += ut.kthreads[i].idle_ns;
		r->switch_clock_ns += ut.cpus[i].hot.switch_ns;
	}
	verbs_check_products();
	if (ut.failed_kind)
		run_fail(ut.failed_kind == SCX_EXIT_ERROR_STALL ? "stall" : "policy", ut.failed_pid,
			 "%s: %s", sl_report().exit->reason, sl_report().exit->msg);
}

static int by_arrival(const void *a, const void *b)
{
	const struct sl_program_task *tasks = sl_program_tasks(run.program);
	u32 i = *(const u32 *)a;
	u32 j = *(const u32 *)b;

	if (tasks[i].arrival_ns != tasks[j].arrival_ns)
		return tasks[i].arrival_ns < tasks[j].arrival_ns ? -1 : 1;
	return i < j ? -1 : i > j;
}

static int open_program(const char *path)
{
	char why[512];

	run.program = sl_program_file_map(path, why, sizeof(why));
	if (!run.program)
		run_fail("usage", 0, "%s", why);
	return run.program ? 0 : -1;
}

/* Return: 0; -1 when a task may run nowhere, or there is no memory. */
static int prepare(void)
{
	const struct sl_program_header *h = sl_program_header(run.program);
	const struct sl_program_task *tasks = sl_program_tasks(run.program);

	if (run.options->nr_cpus < h->nr_cpus_min) {
		run_fail("usage", 0, "the program needs more CPUs than this run has");
		return -1;
	}
	run.result->nr_tasks = h->nr_tasks;
	run.plays = calloc(h->nr_tasks, sizeof(*run.plays));
	run.arrivals = calloc(h->nr_tasks, sizeof(*run.arrivals));
	if (!run.plays || !run.arrivals || verbs_open()) {
		run_fail("host", 0, "not enough memory");
		return -1;
	}
	for (u32 i = 0; i < h->nr_tasks; i++) {
		if (tasks[i].parent == SL_PROGRAM_NONE)
			run.arrivals[run.nr_arrivals++] = i;
	}
	qsort(run.arrivals, run.nr_arrivals, sizeof(u32), by_arrival);
	return 0;
}

static const u16 *groups_of(u32 nr_cpus, u32 cpus_per_group)
{
	u16 *groups = cpus_per_group ? calloc(nr_cpus, sizeof(*groups)) : NULL;

	for (u32 i = 0; groups && i < nr_cpus; i++)
		groups[i] = (u16)(i / cpus_per_group);
	return groups;
}

void play_run(const struct options *o, struct result *r)
{
	struct ut_config config = UT_CONFIG_INIT;
	int err;

	run.options = o;
	run.result = r;
	if (open_program(o->program_path) || prepare() || events_prepare(o->events))
		return;
	config.nr_cpus = o->nr_cpus;
	config.policy = o->policy_path;
	config.sets = o->sets;
	config.seed = o->seed;
	config.tick_ns = o->tick_ns;
	config.records = o->records_path;
	config.threads_max = r->nr_tasks + 1;
	config.flags = (o->has_detail ? UT_RECORD_DETAIL : 0) | (o->is_pinned ? UT_PIN_CPUS : 0);
	ut_topology.smt = groups_of(o->nr_cpus, o->smt);
	ut_topology.llc = groups_of(o->nr_cpus, o->llc);
	ut_topology.node = groups_of(o->nr_cpus, o->node);
	err = ut_run(&config, prepare_groups, begin, end);
	if (err)
		run_fail(ut.failed_kind ? "policy" : "usage", ut.failed_pid, "%s", ut_error_text());
	verbs_close();
}
