/* SPDX-License-Identifier: MIT */
/*
 * events.c - what happens to a machine beside what its tasks do: --events LIST.
 *
 * The list has KIND:WHICH@AT+FOR, separated by commas; times are ns of virtual time.
 *
 *	take:CPU	a higher scheduling class runs on a CPU for so long
 *	pin:CPU		the task that runs on it disables migration, and enables it
 *			again when it next runs after that time
 *	kick:CPU	kicks of this CPU arrive when that time is over
 *	reload:0	the policy is unloaded, and loaded again when that time is over
 *	fail:N		from then on, the N-th call of a helper that may fail does so, once
 *	thread:TASK	that task, of the program from 0, is a kernel thread, from its beginning
 *	exit:0		the end of each task takes so long, whenever it is
 *
 * Events are handled between those of CPUs, so nothing interleaves with their beginning.
 *
 * Called by hosts/sim/loop.c. Read next: interleave.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define EVENTS_MAX 64
/* What can not be done now is tried again so much later. */
#define LATER_NS 1000000

enum kind { TAKE, PIN, KICK, RELOAD, FAIL, THREAD, EXIT, NR_KINDS };
static const char *const names[NR_KINDS] = {
	[TAKE] = "take", [PIN] = "pin", [KICK] = "kick", [RELOAD] = "reload",
	[FAIL] = "fail", [THREAD] = "thread", [EXIT] = "exit",
};

static struct event {
	enum kind	kind;
	u32		which;
	u64		at_ns, until_ns;
	u64		due_ns;		/* PIN, RELOAD: when its end is tried, once it has begun */
	bool		has_begun, is_over;
	struct sim_task	*task;		/* of PIN */
} events[EVENTS_MAX];
static u32 nr_events;
static u64 nr_helper_calls;

static bool is_of_cpu(enum kind kind)
{
	return kind == TAKE || kind == PIN || kind == KICK;
}

/* Return: whether @text is an event of this machine, which @e then has; with its length. */
static bool read_event(const char *text, struct event *e, int *nr_bytes)
{
	unsigned long long at_ns, for_ns;
	char name[16];

	if (sscanf(text, "%15[a-z]:%u@%llu+%llu%n", name, &e->which, &at_ns, &for_ns, nr_bytes) != 4)
		return false;
	e->kind = TAKE;
	while (e->kind < NR_KINDS && strcmp(name, names[e->kind]))
		e->kind++;
	e->at_ns = at_ns;
	e->until_ns = sim_instant(at_ns) + sim_instant(for_ns);
	return e->kind < NR_KINDS &&
	       (!is_of_cpu(e->kind) || e->which < sim.options->nr_cpus) &&
	       (e->kind != THREAD || e->which < sim.nr_tasks);
}

static void begin_early(const struct event *e)
{
	if (e->kind == THREAD) {
		sim.tasks[e->which].core.p.flags |= PF_KTHREAD;
	} else if (e->kind == EXIT) {
		sim.options->costs.exit_ns = e->until_ns - e->at_ns;
		sim.are_calls_free = false;
	} else {
		sim_heap_push(e->at_ns, SIM_EVENT_MACHINE, 0);
	}
	if (e->kind == RELOAD)
		check_remember_policy();
}

/* Context: the tasks are set up, and the policy is not loaded. */
void check_begin_events(void)
{
	const char *text = sim.options->events;
	int nr_bytes = 0;

	while (text && *text) {
		if (nr_events == EVENTS_MAX || !read_event(text, &events[nr_events], &nr_bytes) ||
		    (text[nr_bytes] && text[nr_bytes] != ',')) {
			sim_fail("usage", 0,
				 "--events: '%.80s' does not begin with KIND:WHICH@AT+FOR of this machine", text);
			return;
		}
		begin_early(&events[nr_events++]);
		text += nr_bytes;
		text += *text == ',';
	}
}

/* ---- each kind ---------------------------------------------------------------- */

static void take_cpu(struct event *e)
{
	struct sim_cpu *c = &sim.cpus[e->which];

	bool is_taken = false;

	for (const struct event *o = events; o < events + nr_events; o++)
		is_taken |= o != e && o->kind == TAKE && o->which == e->which && o->has_begun && !o->is_over;
	if (is_taken || c->incoming || e->until_ns <= sim_now_ns) {
		e->is_over = true;
		return;
	}
	sim_set_cpu(c->idx);
	sim_leave(c);
	sl_cpu_take(c->core, sim_now_ns);
	c->burst_at_ns = SIM_NEVER;
	c->tick_at_ns = SIM_NEVER;
	c->resched_at_ns = SIM_NEVER;
	sim_cpu_set_resched(e->which, e->until_ns);
}

/* Return: whether a higher class has the CPU; it schedules when that is over. */
bool check_is_taken(struct sim_cpu *c)
{
	for (u32 i = 0; i < nr_events; i++) {
		struct event *e = &events[i];

		if (e->kind != TAKE || e->which != (u32)c->idx || !e->has_begun || e->is_over)
			continue;
		if (sim_now_ns < e->until_ns) {
			c->resched_at_ns = e->until_ns;
			return true;
		}
		e->is_over = true;
		c->overhead_ns += sim_now_ns - e->at_ns;
		sl_host_record(SL_RECORD_OVERHEAD, 0, c->idx, SL_OVERHEAD_STOLEN,
			       sim_now_ns - e->at_ns);
		sl_cpu_give_back(c->core);
	}
	return false;
}

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

	if (!t || t == sim.user_half || t->core.p.migration_disabled) {
		e->is_over = true;
		return;
	}
	e->task = t;
	t->core.p.migration_disabled = 1;
	set_due(e, e->until_ns);
}

/* A task enables migration itself, so it has to run. */
static void unpin_task(struct event *e)
{
	struct sl_task *t = &e->task->core;

	if (t->state == SL_TASK_DEAD) {
		e->is_over = true;
	} else if (t->state != SL_TASK_RUNNING) {
		set_due(e, sim_now_ns + LATER_NS);
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

static void load_again(struct event *e)
{
	char why[512];
	int err = 0;

	e->is_over = true;
	sim_set_cpu(0);
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

		if (e->kind == FAIL && e->has_begun && !e->is_over && nr_helper_calls++ == e->which) {
			e->is_over = true;
			fails = true;
		}
	}
	return fails;
}

static void begin_event(struct event *e)
{
	e->has_begun = true;
	if (e->kind == TAKE)
		take_cpu(e);
	else if (e->kind == PIN)
		pin_task(e);
	else if (e->kind == RELOAD)
		unload(e);
}

/* Something is due now. */
void check_machine_event(void)
{
	for (u32 i = 0; i < nr_events && !sim.is_over; i++) {
		struct event *e = &events[i];

		if (!e->has_begun && e->at_ns == sim_now_ns && e->kind < THREAD)
			begin_event(e);
		else if (e->is_over || e->due_ns != sim_now_ns)
			continue;
		else if (e->kind == PIN)
			unpin_task(e);
		else if (e->kind == RELOAD)
			load_again(e);
	}
}
