/* SPDX-License-Identifier: MIT */
/*
 * sched.c - the only file that asks the core what runs next, and switches to it.
 *
 * Compare hosts/kernel/kernel/sched.c and hosts/uthreads/sched.c: the same functions in
 * the same order. There is no idle loop: an idle CPU has no event until it is kicked.
 *
 * Read next: interpret.c.
 */
#include "sim.h"

/* What the cost model says about putting @t on @cpu, which goes on with its burst, and why that is done. */
static u64 switch_cost_ns(struct sim_task *t, s32 cpu, enum sl_why why)
{
	const struct sim_costs *costs = &sim.options->costs;
	s32 last = t->core.last_cpu;
	u64 cost_ns = costs->switch_ns;

	if (unlikely(sim.has_speeds))
		sim_speed_fit(t, cpu);
	if (why != SL_WHY_RESCHED)
		cost_ns += costs->leave_ns;

	if (last < 0 || last == cpu)
		return cost_ns;
	cost_ns += costs->migrate_ns;
	if (sim.llc && sim.llc[last] != sim.llc[cpu])
		cost_ns += costs->migrate_llc_ns;
	if (sim.node && sim.node[last] != sim.node[cpu])
		cost_ns += costs->migrate_node_ns;
	return cost_ns;
}

static void end_run(struct sim_cpu *c)
{
	u64 ran_ns = sim_now_ns - c->run_start_ns - c->stolen_ns;

	if (unlikely(c->running >= sim.tasks_end))
		c->overhead_ns += ran_ns;
	else
		c->busy_ns += ran_ns;
	c->running = NULL;
}

/* See sl_scx_cpu_user_ns(). */
u64 sim_user_ns(s32 cpu)
{
	const struct sim_cpu *c = &sim.cpus[cpu];
	u64 until_ns = sim_now_ns;

	if (!c->running || c->running >= sim.tasks_end)
		return c->busy_ns;
	/* In the middle of a tick that takes time, which is stolen as a whole. */
	if (c->run_from_ns > until_ns)
		until_ns = c->run_from_ns;
	return c->busy_ns + until_ns - c->run_start_ns - c->stolen_ns;
}

/*
 * Let the core choose. Return: the task that is now running, whose burst must be looked
 * at; NULL if the CPU is idle or switching.
 */
struct sim_task *sim_schedule(struct sim_cpu *c, enum sl_why why)
{
	struct sim_task *prev = c->running;
	struct sim_task *next;
	u64 tick_at_ns = c->tick_at_ns;
	u64 cost_ns;

	c->resched_at_ns = likely(!c->above_ns) ? SIM_NEVER : sim_now_ns;
	c->burst_at_ns = SIM_NEVER;
	c->tick_at_ns = SIM_NEVER;
	next = (struct sim_task *)sl_schedule(c->core, why, sim_now_ns);
	if (next && next == prev) {
		c->tick_at_ns = tick_at_ns;
		return next;
	}
	if (prev)
		end_run(c);
	if (why == SL_WHY_EXIT)
		sl_task_detach(&prev->core);
	if (!next)
		return NULL;
	cost_ns = sim.is_switch_free ? 0 : switch_cost_ns(next, c->idx, why);
	if (unlikely(c->wait_until_ns > sim_now_ns + cost_ns))
		cost_ns = c->wait_until_ns - sim_now_ns;
	if (cost_ns) {
		c->incoming = next;
		c->switch_ns = cost_ns;
		c->burst_at_ns = sim_instant(sim_now_ns + cost_ns);
		c->overhead_ns += cost_ns;
		return NULL;
	}
	sim_finish_switch(c, next);
	return next;
}

/* @t, which the core has chosen, is on the CPU from now on. */
void sim_finish_switch(struct sim_cpu *c, struct sim_task *t)
{
	c->running = t;
	c->incoming = NULL;
	c->run_start_ns = sim_now_ns;
	c->run_from_ns = sim_now_ns;
	c->stolen_ns = 0;
	sl_switched(c->core, NULL, sim_now_ns);
}

/* A task of a higher class gets the CPU, whatever it does; or it goes offline. */
void sim_take(struct sim_cpu *c)
{
	if (!c->goes_offline) {
		sl_cpu_take(c->core, sim_now_ns);
	} else if (sl_cpu_offline(c->core, sim_now_ns)) {
		c->is_offline = true;
	} else {
		sim_offline_later((u32)c->idx, c->above_ns);
		c->above_ns = 0;
		return;
	}
	if (c->running)
		end_run(c);
	c->burst_at_ns = SIM_NEVER;
	c->tick_at_ns = SIM_NEVER;
	c->above_from_ns = sim_now_ns;
	c->above_until_ns = sim_instant(sim_now_ns + c->above_ns);
	c->above_ns = 0;
}

/* Until now no task of the policy's could have the CPU. */
static void account_taken(struct sim_cpu *c)
{
	u64 taken_ns = sim_now_ns - c->above_from_ns;

	c->overhead_ns += taken_ns;
	sl_host_record(SL_RECORD_OVERHEAD, 0, c->idx, SL_OVERHEAD_STOLEN, taken_ns);
}

/* It has had the CPU until now. */
void sim_give_back(struct sim_cpu *c)
{
	c->above_until_ns = 0;
	if (c->is_offline)
		sl_cpu_online(c->core);
	else
		sl_cpu_give_back(c->core);
	c->is_offline = false;
	account_taken(c);
}

/* The running task will block until its op is completed. */
void sim_prepare_block(struct sim_task *t)
{
	sl_task_prepare_block(sim_core_cpu, &t->core);
}

/* @waker_pid: 0: a timer or the device. */
void sim_wake(struct sim_task *t, u64 wake_flags, s32 waker_pid)
{
	sl_task_wake(sim_core_cpu, &t->core, wake_flags, waker_pid);
}

/* @reads_ns: of the clock. Return: whether the CPU has to schedule. */
bool sim_tick(u64 reads_ns)
{
	return sl_tick(sim_core_cpu, reads_ns, 0);
}

/* @parent: NULL: the host starts it. Return: 0, or -errno when the core has no room. */
int sim_attach(struct sim_task *t, const struct task_attr *attr, struct sim_task *parent)
{
	int err = sl_task_give_attrs(&t->core, attr);

	if (!err)
		sl_task_attach(&t->core, parent ? &parent->core : NULL);
	return err;
}

/* @t is attached. @parent: as above. */
void sim_start(struct sim_task *t, struct sim_task *parent)
{
	bool was_there = parent ? sim.options->arrivals_wake : sim.options->roots_wake;

	sl_task_start(sim_core_cpu, &t->core, was_there ? SCX_WAKE_TTWU : SCX_WAKE_FORK,
		      parent ? parent->core.p.pid : 0);
}

/* It begins asleep. */
void sim_wake_user_thread(struct sim_task *t)
{
	if (t->core.state == SL_TASK_NEW)
		sl_task_start(sim_core_cpu, &t->core, SCX_WAKE_TTWU, 0);
	else
		sim_wake(t, 0, 0);
}

/* Only the part of a switch that lies within the run was spent. */
static void end_switch_early(struct sim_cpu *c)
{
	u64 left_ns = c->burst_at_ns - sim_now_ns;

	c->overhead_ns -= left_ns;
	sl_host_record(SL_RECORD_OVERHEAD, 0, c->idx, SL_OVERHEAD_SWITCH, c->switch_ns - left_ns);
}

/* The run is over: account for, and record, what is on the CPUs. */
void sim_cpu_end_all(void)
{
	for (u32 i = 0; i < sim.options->nr_cpus; i++) {
		struct sim_cpu *c = &sim.cpus[i];

		if (c->incoming) {
			end_switch_early(c);
			continue;
		}
		if (c->running && c->run_from_ns > sim_now_ns) {
			/* In the middle of a tick that takes time. */
			c->overhead_ns -= c->run_from_ns - sim_now_ns;
			c->stolen_ns -= c->run_from_ns - sim_now_ns;
		}
		if (c->above_until_ns)
			account_taken(c);
		sl_stop_at_horizon(c->core, sim_now_ns);
		if (c->running)
			end_run(c);
	}
}
