/* SPDX-License-Identifier: MIT */
/*
 * cpu.c - one virtual CPU: runs a task's bursts, ticks, and schedules.
 *
 *	idle --schedule--> switching --its cost is over--> running
 *	  ^                                                  |  |
 *	  |                       burst over: interpret      |  | tick, kick:
 *	  +------- blocked, ended, nothing else to run <-----+  | schedule
 *
 * A CPU has three instants of its own: the end of the burst (or switch), the
 * next tick that matters, and a pending kick; tree.c holds the earliest. A tick
 * matters when the slice will be used up by then (S15), or always, if the
 * policy has ops.tick() or ticks cost time. Skipping the others changes
 * nothing that can be seen: charging is linear.
 *
 * Called by loop.c. Read next: interpret.c.
 */
#include "sim.h"

sl_inline void refresh_key(const struct sim_cpu *c)
{
	u64 burst = sim_key(c->burst_at_ns, SIM_CLASS_BURST);
	u64 resched = sim_key(c->resched_at_ns, SIM_CLASS_RESCHED);
	u64 tick = sim_key(c->tick_at_ns, SIM_CLASS_TICK);
	u64 first = resched < burst ? resched : burst;

	sim_tree_update((u32)c->idx, tick < first ? tick : first);
}

/* First tick strictly after now, at or after @t_ns. */
static u64 tick_at_or_after(u64 t_ns)
{
	u64 tick_ns = sim.options->tick_ns;

	if (t_ns <= sim_now_ns)
		t_ns = sim_now_ns + 1;
	return sim_instant((t_ns + tick_ns - 1) / tick_ns * tick_ns);
}

/*
 * The next tick that matters for the running task. Its slice was right at
 * exec_start_ns, which is not later than now by more than a stolen tick. If the
 * burst ends before the slice does, this is called again before that tick. A
 * tick that is due at this very instant stays due.
 */
sl_inline void set_tick(struct sim_cpu *c, const struct sl_task *t)
{
	if (c->tick_at_ns == sim_now_ns)
		return;
	if (sim.has_ticks) {
		/* That of all CPUs; a division at each switch would take a twentieth of a run. */
		if (sim_now_ns >= sim.tick_at_ns)
			sim.tick_at_ns = tick_at_or_after(0);
		c->tick_at_ns = sim.tick_at_ns;
	} else if (t->p.scx.slice > SIM_NEVER / 8 ||
		   t->exec_start_ns + t->p.scx.slice > c->burst_at_ns)
		c->tick_at_ns = SIM_NEVER;
	else
		c->tick_at_ns = tick_at_or_after(t->exec_start_ns + t->p.scx.slice);
}

/*
 * What the tick at @t_ns, or before it, reads of the clock. On a machine no tick is as late
 * as the one before, so that a slice of whole ticks may last one more (S15).
 */
static u64 tick_reads_ns(const struct sim_cpu *c, u64 t_ns)
{
	u64 nr = t_ns / sim.options->tick_ns;

	t_ns = nr * sim.options->tick_ns;
	return unlikely(sim.options->costs.jitter_ns) ?
		       t_ns - sim_jitter_ns(nr << 16 | (u64)c->idx) :
		       t_ns;
}

/*
 * See sl_host_slice_changed(): the task may be any CPU's. On a machine it has
 * been charged up to its last tick, so it is here, before the new slice counts.
 */
void sim_slice_changed(struct sl_task *t)
{
	struct sim_cpu *c = &sim.cpus[t->cpu];
	u64 slice_ns = t->p.scx.slice;

	if (!c->running || &c->running->core != t)
		return;
	sl_task_charge(t, tick_reads_ns(c, sim_now_ns));
	sl_task_set_slice(t, slice_ns);
	set_tick(c, t);
	refresh_key(c);
}

/* The running task's burst has counted down to now. */
static void count_down(struct sim_cpu *c)
{
	u64 ran_ns = sim_now_ns - c->run_from_ns;

	SL_ASSERT(ran_ns <= c->running->remaining_ns);
	c->running->remaining_ns -= ran_ns;
	c->run_from_ns = sim_now_ns;
}

/*
 * Go on with the program of the task that runs, and schedule when that comes to it,
 * until the CPU has something that takes time, or nothing to do.
 */
sl_inline void go_on(struct sim_cpu *c, enum sim_next next)
{
	struct sim_task *t = c->running;

	while (next != SIM_NEXT_NOTHING && !sim.is_over) {
		if (next != SIM_NEXT_RUN) {
			t = sim_schedule(c, (enum sl_why)next);
			if (unlikely(next == SIM_NEXT_EXIT) && !--sim.nr_left)
				sim.is_over = true;
			if (!t || sim.is_over)
				return;
		}
		next = SIM_NEXT_RUN;
		if (!t->remaining_ns) {
			/* What brought it here was not spurious. */
			c->nr_kicks = 0;
			next = sim_interpret(t);
		}
		if (next == SIM_NEXT_RUN && t->remaining_ns) {
			c->burst_at_ns = sim_instant(sim_now_ns + t->remaining_ns);
			set_tick(c, &t->core);
			return;
		}
	}
}

/* A tick takes its cost from the task, without the task getting any further. */
static void steal_tick(struct sim_cpu *c)
{
	u64 cost_ns = sim.options->costs.tick_ns;

	if (!cost_ns)
		return;
	/* The record is written before the time is spent: it must not say more. */
	if (cost_ns > sim.end_ns - sim_now_ns)
		cost_ns = sim.end_ns - sim_now_ns;
	sl_host_record(SL_RECORD_OVERHEAD, 0, c->idx, SL_OVERHEAD_TICK, cost_ns);
	c->overhead_ns += cost_ns;
	c->stolen_ns += cost_ns;
	c->run_from_ns += cost_ns;
	c->burst_at_ns = sim_instant(c->burst_at_ns + cost_ns);
	sl_task_steal(&c->running->core, cost_ns);
}

static enum sim_next handle_tick(struct sim_cpu *c)
{
	c->tick_at_ns = SIM_NEVER;
	if (!c->running)
		return SIM_NEXT_NOTHING;
	count_down(c);
	if (sim_tick(tick_reads_ns(c, sim_now_ns)))
		return SIM_NEXT_RESCHED;
	steal_tick(c);
	set_tick(c, &c->running->core);
	return SIM_NEXT_NOTHING;
}

static enum sim_next handle_burst(struct sim_cpu *c)
{
	if (c->incoming) {
		sl_host_record(SL_RECORD_OVERHEAD, 0, c->idx, SL_OVERHEAD_SWITCH, c->switch_ns);
		sim_finish_switch(c, c->incoming);
	} else {
		count_down(c);
	}
	c->burst_at_ns = SIM_NEVER;
	return SIM_NEXT_RUN;
}

/* Return: whether a task of a higher class has the CPU, or it is offline. */
static __noinline bool is_taken(struct sim_cpu *c)
{
	if (c->above_ns) {
		if (c->running)
			count_down(c);
		sim_take(c);
	}
	c->resched_at_ns = c->above_until_ns;
	if (c->above_until_ns > sim_now_ns)
		return true;
	if (c->above_until_ns)
		sim_give_back(c);
	return false;
}

static enum sim_next handle_resched(struct sim_cpu *c)
{
	/* A kick during a switch or a stolen tick waits for its end. */
	if (c->incoming || (c->running && c->run_from_ns > sim_now_ns)) {
		c->resched_at_ns = c->incoming ? c->burst_at_ns : sim_instant(c->run_from_ns);
		return SIM_NEXT_NOTHING;
	}
	if (unlikely(c->above_ns | c->above_until_ns) && is_taken(c))
		return SIM_NEXT_NOTHING;
	if (c->kicked_at_ns != sim_now_ns)
		c->nr_kicks = 0;
	c->kicked_at_ns = sim_now_ns;
	if (sim_is_endless())
		return SIM_NEXT_NOTHING;
	if (++c->nr_kicks > SIM_PER_INSTANT_MAX) {
		sim_fail("policy", c->running ? c->running->core.p.pid : 0,
			 "CPU %u was kicked %u times at %llu ns: on a machine, policy '%s' would waste its time",
			 (u32)c->idx, SIM_PER_INSTANT_MAX, (unsigned long long)sim_now_ns,
			 sl_report().policy);
		return SIM_NEXT_NOTHING;
	}
	if (c->running)
		count_down(c);
	return SIM_NEXT_RESCHED;
}

/* Handle the instant of @class that is due now on @cpu. */
void sim_cpu_handle(s32 cpu, enum sim_class class)
{
	struct sim_cpu *c = &sim.cpus[cpu];
	enum sim_next next;

	sim_set_cpu(cpu);
	if (likely(class == SIM_CLASS_BURST))
		next = handle_burst(c);
	else if (class == SIM_CLASS_RESCHED)
		next = handle_resched(c);
	else
		next = handle_tick(c);
	go_on(c, next);
	refresh_key(c);
}

/* What is left of the burst on @c takes another time from now on. */
void sim_cpu_speed_changed(struct sim_cpu *c)
{
	struct sim_task *t = c->running;

	if (c->incoming)
		sim_speed_fit(c->incoming, c->idx);
	if (!t)
		return;
	/* Not while a tick takes its cost: that does not count down. */
	if (c->run_from_ns < sim_now_ns)
		count_down(c);
	sim_speed_fit(t, c->idx);
	if (c->burst_at_ns == SIM_NEVER)
		return;
	c->burst_at_ns = sim_instant(c->run_from_ns + t->remaining_ns);
	set_tick(c, &t->core);
	refresh_key(c);
}

void sim_cpu_set_resched(u32 idx, u64 t_ns)
{
	struct sim_cpu *c = &sim.cpus[idx];

	t_ns = sim_instant(t_ns);
	if (c->resched_at_ns <= t_ns)
		return;
	c->resched_at_ns = t_ns;
	refresh_key(c);
}

_Static_assert(sizeof(void *) < 8 || (offsetof(struct sl_task, dsq) % 64 == 0 &&
				      offsetof(struct sim_task, remaining_ns) / 64 ==
					      offsetof(struct sl_task, wait_ns_max) / 64 &&
				      offsetof(struct sim_task, player.task) / 64 ==
					      offsetof(struct sim_task, owed_ns) / 64),
	       "a task that only runs and sleeps is in five cache lines of ten");

/*
 * Where there are 100,000 tasks, each is in far memory when its turn comes. A list says
 * where the next one is only when the one before has arrived; but tasks that began one after
 * the other mostly wait in that order, and then it is known for those further on, too.
 */
#define TURNS_AHEAD 2

void sim_prefetch(const struct sl_task *first)
{
	const struct sim_task *now = (const struct sim_task *)first;
	const struct sim_task *next = (const struct sim_task *)now->core.next;
	const struct sim_task *then = (const struct sim_task *)next->core.next;
	ptrdiff_t step = then - next;

	__builtin_prefetch(next->player.slots, 1);
	if (next - now == step)
		then += TURNS_AHEAD * step;
	__builtin_prefetch(&then->core.p.scx.slice, 1);
	__builtin_prefetch(&then->core.p.pid, 1);
	__builtin_prefetch(&then->core.dsq, 1);
	__builtin_prefetch(&then->core.wait_ns_max, 1);
	__builtin_prefetch(&then->player.slots, 1);
}
