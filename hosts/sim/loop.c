/* SPDX-License-Identifier: MIT */
/*
 * loop.c - moves virtual time from one event to the next, until the run is over.
 *
 * Two sources of events: the heap (the run's end, the next arrival, wake-ups and
 * timers) and the tree (one earliest instant per CPU). The smaller key of the
 * two is next; keys carry time and kind, so ties are decided the same way on
 * every machine.
 *
 * Called by worker.c. Read next: cpu.c.
 */
#include <stdio.h>

#include "sim.h"

#define ZERO_EVENTS_MAX 20000000

/* @number: what sl_host_set_timer() has put in: 0, or one more than the CPU that it is for. */
static void run_timers(u32 number)
{
	struct sim_cpu *cpu = &sim.cpus[number ? number - 1 : 0];
	u64 *timer_at_ns = number ? &cpu->timer_at_ns : &sim.timer_at_ns;

	sim_set_cpu(cpu->idx);
	if (*timer_at_ns != sim_now_ns)
		return;
	*timer_at_ns = SIM_NEVER;
	if (cpu->is_offline)
		return;
	if (sim.timers_ran_at_ns != sim_now_ns)
		sim.nr_timer_runs = 0;
	sim.timers_ran_at_ns = sim_now_ns;
	if (++sim.nr_timer_runs > SIM_PER_INSTANT_MAX) {
		sim_fail("policy", 0,
			 "timers called back %u times at %llu ns: policy '%s' starts them again for at once",
			 SIM_PER_INSTANT_MAX, (unsigned long long)sim_now_ns, sl_report().policy);
		return;
	}
	sl_timers_run();
}

static void end_here(void)
{
	u64 horizon_ns = sl_program_header(sim.program)->horizon_ns;

	sim_now_ns = sim.end_ns;
	if (sim.end_ns != horizon_ns)
		sim_fail("limit", 0, "%u of %u tasks had not ended at the limit of %llu ns",
			 sim.nr_left, sim.nr_tasks, (unsigned long long)sim.end_ns);
	sim.is_over = true;
}

/* The arrivals were sorted once: the next one is in the heap, before what else comes then. */
static void push_arrival(void)
{
	u32 number;

	if (sim.next_arrival == sim.nr_arrivals)
		return;
	number = sim.arrivals[sim.next_arrival];
	sim_heap_push_first(sl_program_tasks(sim.program)[number].arrival_ns, SIM_EVENT_ARRIVE,
			    number);
}

static void arrive(struct sim_task *task)
{
	sim.next_arrival++;
	push_arrival();
	sim_set_cpu(0);
	sim_task_begin(task, NULL);
}

/*
 * Kicks and what the heap has may happen so often without time passing; the rest takes
 * time. Return: whether there are more, and the run has failed.
 */
bool sim_is_endless(void)
{
	if (likely(++sim.nr_zero_ops <= ZERO_EVENTS_MAX))
		return false;
	sim_fail("policy", 0,
		 "%llu events without time passing at %llu ns: the policy keeps kicking CPUs",
		 (unsigned long long)sim.nr_zero_ops, (unsigned long long)sim_now_ns);
	return true;
}

/* The earliest event of the heap is due. */
void sim_handle_heap(void)
{
	struct sim_task *task;
	enum sim_event_kind kind;

	if (sim_is_endless())
		return;
	kind = sim_heap_pop(&task);
	if (likely(kind >= SIM_EVENT_WAKE)) {
		if (kind == SIM_EVENT_DEVICE)
			sim_device_done();
		sim_set_cpu(sim_woken_on(task));
		sim_wake(task, 0, 0);
		return;
	}
	switch (kind) {
	case SIM_EVENT_TIMER:
		run_timers((u32)(task - sim.tasks));
		break;
	case SIM_EVENT_ARRIVE:
		arrive(task);
		break;
	case SIM_EVENT_DUMP:
		sl_dump();
		break;
	case SIM_EVENT_MACHINE:
		sim_machine_event();
		break;
	case SIM_EVENT_POLL:
		sim_set_cpu(sim_woken_on(task));
		sim_wake_user_thread(task);
		break;
	case SIM_EVENT_ABOVE:
		sim_above_begin((u32)(task - sim.tasks));
		break;
	default:
		end_here();
	}
}

/* Every task that is left waits for another one. Say which waits for what. */
static void report_deadlock(void)
{
	char text[512];
	u32 used = 0;
	u32 nr = 0;
	s32 pid = 0;

	for (u32 i = 0; i < sim.nr_tasks; i++) {
		struct sim_task *t = &sim.tasks[i];

		if (t->core.state != SL_TASK_BLOCKED)
			continue;
		if (!nr++)
			pid = t->core.p.pid;
		if (used < sizeof(text) - 64)
			used += (u32)snprintf(text + used, sizeof(text) - used, "%s%s[%d] for %s",
					      nr > 1 ? ", " : "", t->core.p.comm, t->core.p.pid,
					      t->waits_for);
	}
	sim_fail("deadlock", pid, "nothing can happen any more, %u tasks wait: %s", nr,
		 nr ? text : "none");
}

/* No CPU has anything to do. Is this a point where only timers would continue? */
static bool is_stuck(void)
{
	if (sim.next_arrival < sim.nr_arrivals || sim_heap_will_wake())
		return false;
	for (u32 i = 0; i < sim.nr_tasks; i++) {
		u8 state = sim.tasks[i].core.state;

		/* The policy forgot it: the watchdog will say so. */
		if (state == SL_TASK_RUNNABLE)
			return false;
	}
	return true;
}

static void move_to(u64 t_ns)
{
	if (t_ns == sim_now_ns)
		return;
	SL_ASSERT(t_ns > sim_now_ns);
	sim_now_ns = t_ns;
	sim.nr_zero_ops = 0;
}

/* Return: the time at which the run must end, whatever is left. */
static u64 end_of_time_ns(void)
{
	u64 horizon_ns = sl_program_header(sim.program)->horizon_ns;
	u64 end_ns = SIM_TIME_MAX;

	if (horizon_ns && horizon_ns < end_ns)
		end_ns = horizon_ns;
	if (sim.options->limit_ns && sim.options->limit_ns < end_ns)
		end_ns = sim.options->limit_ns;
	return end_ns;
}

static void end_without_events(void)
{
	/* With a horizon, servers may wait without end: that is its use. */
	if (sl_program_header(sim.program)->horizon_ns)
		end_here();
	else
		report_deadlock();
}

static void step(void)
{
	u64 key = sim_tree_first_key;

	if (key < sim_heap_first_key) {
		move_to(key / 4);
		sim_begin_cpu((s32)sim_tree_first, key % 4);
	} else if (unlikely(key >= SIM_KEY_NEVER) && is_stuck()) {
		end_without_events();
	} else {
		move_to(sim_heap_first_key / 4);
		sim_begin_heap();
	}
}

/* Before the policy is loaded: the heap is never empty from here on. */
void sim_loop_begin(void)
{
	sim.end_ns = end_of_time_ns();
	sim_heap_push_first(sim.end_ns, SIM_EVENT_END, 0);
	push_arrival();
	sim_begin_machine_events();
}

/* Run to the end: all tasks ended, the horizon, or a failure of the program. gdb.py stops here. */
__noinline void sim_loop(void)
{
	if (sim.options->dump_at_ns)
		sim_heap_push(sim.options->dump_at_ns, SIM_EVENT_DUMP, 0);
	sim_above_push_all();
	sim.is_over |= !sim.nr_left;
	while (!sim.is_over)
		step();
	sim_cpu_end_all();
	sim.result->end_ns = sim_now_ns;
}
