/* SPDX-License-Identifier: MIT */
/*
 * events.c - what happens to a machine beside what its tasks do: --events LIST.
 *
 * The list has KIND:WHICH@AT+FOR, separated by commas; times are ns of virtual time.
 *
 *	take:CPU	a higher scheduling class runs on a CPU for so long
 *	offline:CPU	a CPU, but for the first, is offline for so long; a policy that is
 *			stopped by that is loaded again, as its loader does on Linux
 *	pin:CPU		the task that runs on it disables migration, and enables it
 *			again when it next runs after that time
 *	kick:CPU	kicks of this CPU arrive when that time is over
 *	reload:0	the policy is unloaded, and loaded again when that time is over
 *	fail:N		from then on, the N-th call of a helper that may fail does so, once
 *	thread:TASK	that task, of the program from 0, is a kernel thread, from its beginning
 *	exit:0		the end of each task takes so long, whenever it is
 *	skew:CPU	the clock of a CPU is so far ahead, from its beginning
 *	start:0		the clocks of all CPUs are that, from the beginning
 *	weight:OBJECT	the group of that object has this weight from then on, instead of a time
 *	quota:OBJECT	and this quota, in ns of each of its periods
 *
 * Events are handled between those of CPUs, so nothing interleaves with their beginning.
 *
 * Called by hosts/sim/loop.c. Read next: interleave.c.
 */
#include <string.h>

#include "check.h"

#define EVENTS_MAX 64
/* What can not be done now is tried again so much later. */
#define LATER_NS 1000000

enum kind {
	TAKE,
	OFFLINE,
	PIN,
	KICK,
	RELOAD,
	FAIL,
	WEIGHT,
	QUOTA,
	THREAD, /* from here on: from the beginning */
	EXIT,
	SKEW,
	START,
	NR_KINDS
};

static const char *const names[NR_KINDS] = {
	[TAKE] = "take",     [OFFLINE] = "offline", [PIN] = "pin",	 [KICK] = "kick",
	[RELOAD] = "reload", [FAIL] = "fail",	    [THREAD] = "thread", [EXIT] = "exit",
	[SKEW] = "skew",     [START] = "start",	    [WEIGHT] = "weight", [QUOTA] = "quota",
};

static struct event {
	enum kind kind;
	u32 which;
	u64 at_ns, until_ns;
	u64 due_ns; /* PIN, RELOAD: when its end is tried, once it has begun */
	u32 nr_tries;
	bool has_begun, is_over;
	struct sim_task *task; /* of PIN */
} events[EVENTS_MAX];
static u32 nr_events;
static u64 nr_helper_calls;
static u64 ahead_ns[SCX_CPUS_MAX]; /* of each CPU's clock */
u64 check_clock_start_ns;
static u64 restart_at_ns; /* of a policy that a CPU's going has stopped; 0: none */

static bool is_of_cpu(enum kind kind)
{
	return kind == TAKE || kind == OFFLINE || kind == PIN || kind == KICK || kind == SKEW;
}

static bool is_of_group(enum kind kind)
{
	return kind == WEIGHT || kind == QUOTA;
}

static bool is_value_of_group(enum kind kind, u64 object, u64 value)
{
	return object < sl_program_header(sim.program)->nr_objects && sim.groups[object] &&
	       value >= 1 && (kind == QUOTA || value <= 10000);
}

/* Take an event of this machine off @text. Return: whether there is one, which @e then has. */
static bool read_event(const char **text, struct event *e)
{
	u64 which, for_ns;
	u32 kind = 0;

	while (kind < NR_KINDS && strncmp(*text, names[kind], strlen(names[kind])))
		kind++;
	if (kind == NR_KINDS)
		return false;
	*text += strlen(names[kind]);
	if (*(*text)++ != ':' || !sim_take_number(text, '@', &which) ||
	    !sim_take_number(text, '+', &e->at_ns) || !sim_take_number(text, ',', &for_ns))
		return false;
	e->kind = kind;
	e->which = (u32)which;
	e->until_ns = sim_instant(e->at_ns) + sim_instant(for_ns);
	if (is_of_group(kind) && !is_value_of_group(kind, which, for_ns))
		return false;
	return which == e->which && (!is_of_cpu(kind) || which < sim.options->nr_cpus) &&
	       (kind != OFFLINE || which) && (kind != THREAD || which < sim.nr_tasks);
}

static void begin_early(const struct event *e)
{
	if (e->kind == THREAD) {
		sim.tasks[e->which].core.p.flags |= PF_KTHREAD;
	} else if (e->kind == EXIT) {
		sim.options->costs.exit_ns = e->until_ns - e->at_ns;
		sim.are_calls_free = false;
	} else if (e->kind == SKEW) {
		ahead_ns[e->which] = e->until_ns - e->at_ns;
	} else if (e->kind == START) {
		check_clock_start_ns = e->until_ns - e->at_ns - SL_UPTIME_NS;
	} else {
		sim_heap_push(e->at_ns, SIM_EVENT_MACHINE, 0);
	}
	if (e->kind == RELOAD || e->kind == OFFLINE)
		check_remember_policy();
}

/* Context: the tasks are set up, and the policy is not loaded. */
void check_begin_events(void)
{
	const char *text = sim.options->events;

	check_open_calls(sim.options);
	while (text && *text) {
		const char *one = text;

		if (nr_events == EVENTS_MAX || !read_event(&text, &events[nr_events])) {
			sim_fail("usage", 0,
				 "--events: '%.80s' does not begin with KIND:WHICH@AT+FOR of this machine",
				 one);
			return;
		}
		begin_early(&events[nr_events++]);
	}
}

/* ---- each kind ---------------------------------------------------------------- */

/* How much later than others a kick that is sent now reaches @cpu. */
u64 check_kick_delay_ns(s32 cpu)
{
	for (u32 i = 0; i < nr_events; i++) {
		const struct event *e = &events[i];

		if (e->kind == KICK && e->which == (u32)cpu && e->at_ns <= sim_now_ns &&
		    sim_now_ns < e->until_ns)
			return e->until_ns - sim_now_ns;
	}
	return 0;
}

static void set_due(struct event *e, u64 t_ns)
{
	e->due_ns = sim_instant(t_ns);
	sim_heap_push(e->due_ns, SIM_EVENT_MACHINE, 0);
}

static void pin_task(struct event *e)
{
	struct sim_task *t = sim.cpus[e->which].running;

	if (!t || t >= sim.tasks_end || t->core.p.migration_disabled) {
		e->is_over = true;
		return;
	}
	e->task = t;
	t->core.p.migration_disabled = 1;
	set_due(e, e->until_ns);
}

/*
 * From half to one and a half LATER_NS, by a golden section of that for each try: so that
 * the tries fall into every part of whatever repeats itself, as tasks in turn do.
 */
static u64 later_ns(struct event *e)
{
	u32 part = ++e->nr_tries * 0x9e3779b9u;

	return LATER_NS / 2 + ((u64)part * LATER_NS >> 32);
}

/* A task enables migration itself, so it has to run. */
static void unpin_task(struct event *e)
{
	struct sl_task *t = &e->task->core;

	if (t->state == SL_TASK_DEAD) {
		e->is_over = true;
	} else if (t->state != SL_TASK_RUNNING) {
		set_due(e, sim_now_ns + later_ns(e));
	} else {
		e->is_over = true;
		t->p.migration_disabled = 0;
		sim_set_cpu(t->cpu);
		/* Where its mask has changed meanwhile, it has to leave. */
		sl_host_kick(t->cpu);
	}
}

static void unload(struct event *e)
{
	if (sim.result->error_kind) {
		e->is_over = true;
		return;
	}
	sim_set_cpu(0);
	sl_policy_disable(false);
	/* Built-in FIFO ends slices by ticks. */
	sim.has_ticks = true;
	set_due(e, e->until_ns);
}

static void load_again(void)
{
	char why[512];
	int err = 0;

	sim_set_cpu(0);
	/* Where that has not happened yet. */
	sl_policy_disable(false);
	check_restore_policy();
	for (const char *const *set = sim.options->sets; *set && !err; set++)
		err = sim_policy_set(*set, why, sizeof(why));
	SL_ASSERT(!err);
	err = sl_policy_enable(sim_policy_file.policy, false);
	if (err)
		sim_fail("policy", 0, "policy '%s' could not be loaded again: %s%s%.300s",
			 sim_policy_file.policy->ops->name, sim_error_text(-err),
			 sl_report().why[0] ? ": " : "", sl_report().why);
}

/* Return: whether the policy that has ended is loaded again, a while later. */
bool check_restarts(const struct scx_exit_info *info)
{
	if (info->kind != SCX_EXIT_UNREG_KERN || !(info->exit_code & SCX_ECODE_ACT_RESTART))
		return false;
	restart_at_ns = sim_now_ns + LATER_NS;
	sim_heap_push(restart_at_ns, SIM_EVENT_MACHINE, 0);
	return true;
}

/*
 * Does a helper fail that could have done what it is asked for? Not where a policy may
 * refuse what it is asked for in turn, as in ops.init_task(): then Linux gives up, too.
 */
bool check_helper_fails(void)
{
	const char *callback = nr_events ? sl_cpu_report(sim_cpu_idx).callback : NULL;
	bool fails = false;

	if (!callback || !strncmp(callback, "init", 4) || !strncmp(callback, "cgroup", 6))
		return false;
	for (u32 i = 0; i < nr_events; i++) {
		struct event *e = &events[i];

		if (e->kind == FAIL && e->has_begun && !e->is_over &&
		    nr_helper_calls++ == e->which) {
			e->is_over = true;
			fails = true;
		}
	}
	return fails;
}

u64 check_clock_ahead_ns(void)
{
	return ahead_ns[sim_cpu_idx];
}

/* Context: between events of CPUs; on Linux a process writes into a file of the cgroup. */
static void change_group(const struct event *e)
{
	const u64 *values = sl_program_group(sim.program, e->which);
	u64 value = e->until_ns - e->at_ns;

	sim_set_cpu(0);
	if (e->kind == WEIGHT)
		sl_cgroup_set_weight(sim.groups[e->which], (u32)value);
	else
		sl_cgroup_set_bandwidth(sim.groups[e->which], values[SL_GROUP_PERIOD_US],
					value / 1000, 0);
}

static void begin_event(struct event *e)
{
	e->has_begun = true;
	if (e->kind == TAKE || e->kind == OFFLINE)
		sim_above_want(e->which, e->until_ns - e->at_ns, e->kind == OFFLINE);
	else if (e->kind == PIN)
		pin_task(e);
	else if (e->kind == RELOAD)
		unload(e);
	else if (is_of_group(e->kind))
		change_group(e);
}

/* Something is due now. */
void check_machine_event(void)
{
	if (restart_at_ns && restart_at_ns == sim_now_ns && !sim.result->error_kind)
		load_again();
	for (u32 i = 0; i < nr_events && !sim.is_over; i++) {
		struct event *e = &events[i];

		if (!e->has_begun && e->at_ns == sim_now_ns && e->kind < THREAD)
			begin_event(e);
		else if (!e->has_begun || e->is_over || e->due_ns != sim_now_ns)
			continue;
		else if (e->kind == PIN)
			unpin_task(e);
		else if (e->kind == RELOAD) {
			e->is_over = true;
			load_again();
		}
	}
}
