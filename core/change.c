/* SPDX-License-Identifier: MIT */
/*
 * change.c - changing a task that may be anywhere: weight, affinity,
 * attributes; and taking it off whatever queue it is on.
 *
 * Called by hosts. As on Linux (S17), a runnable task is taken off its queue,
 * changed, and queued again, so that a policy sees the change at a place where
 * it decides.
 *
 * Read next: cpuset.c.
 */
#include "core.h"

#define DEQUEUE_SAVE 0x2ULL
#define ENQUEUE_RESTORE 0x2ULL

/*
 * Take @t, which is runnable but not running, from wherever it is: a queue, or
 * the policy. Context: @cpu, whose lock is held, is the CPU of @t.
 * Return: false if it is on its way between two places: drop the lock, retry.
 */
static bool take_from_queue(struct sl_cpu *cpu, struct sl_task *t)
{
	struct sl_dsq *q = smp_load_acquire(&t->dsq);
	u64 state;
	bool was_on;

	if (q == &cpu->local) {
		dsq_remove(q, t);
		return true;
	}
	if (q) {
		if (q->is_local)
			return false;
		sl_lock(&q->lock);
		was_on = READ_ONCE(t->dsq) == q;
		if (was_on)
			dsq_remove(q, t);
		sl_unlock(&q->lock);
		return was_on;
	}
	state = smp_load_acquire(&t->ops_state);
	return (state & SL_OPSS_MASK) == SL_OPSS_QUEUED &&
	       sl_cas_u64(&t->ops_state, state, (state & ~(u64)SL_OPSS_MASK) | SL_OPSS_NONE);
}

/*
 * Lock the CPU of @t, in @state, once @t is on its way nowhere: one that waits has been
 * taken from where it was.
 */
static struct sl_cpu *lock_and_take(struct sl_task *t, u8 *state)
{
	for (;;) {
		struct sl_cpu *cpu = lock_cpu_of(t, state);

		if (*state != SL_TASK_WAKING &&
		    (*state != SL_TASK_RUNNABLE || take_from_queue(cpu, t)))
			return cpu;
		sl_unlock(&cpu->lock);
		sl_host_relax();
	}
}

/* How a task was found, so that it is left the same way. */
struct change {
	struct sl_cpu *cpu; /* locked */
	bool was_queued;
	bool was_running;
};

/* Get hold of @t, wherever it is, and tell the policy so (S17). */
static struct change begin_change(struct sl_task *t)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	struct change c;
	u8 state;

	c.cpu = lock_and_take(t, &state);
	c.was_running = state == SL_TASK_RUNNING;
	c.was_queued = state == SL_TASK_RUNNABLE;
	this_cpu->holds_lock = true;
	if (c.was_queued)
		end_custody(t, SCX_DEQ_SCHED_CHANGE);
	if (c.was_running) {
		charge(t, sl_host_now_ns());
		SL_CALL_OP(this_cpu, stopping, t, &t->p, false);
	}
	if (c.was_queued || c.was_running)
		SL_CALL_OP(this_cpu, quiescent, t, &t->p, DEQUEUE_SAVE | SCX_DEQ_SCHED_CHANGE);
	return c;
}

static void end_change(struct sl_task *t, struct change c)
{
	struct sl_cpu *this_cpu = sl_this_cpu();

	if (c.was_running) {
		SL_CALL_OP(this_cpu, runnable, t, &t->p, ENQUEUE_RESTORE);
		SL_CALL_OP(this_cpu, running, t, &t->p);
		if (!sl_may_run_on(t, c.cpu->id))
			sl_host_kick(c.cpu->id);
	} else if (c.was_queued && is_cpu_allowed(t, c.cpu->id)) {
		SL_CALL_OP(this_cpu, runnable, t, &t->p, ENQUEUE_RESTORE);
		do_enqueue_task(this_cpu, c.cpu, t, ENQUEUE_RESTORE);
	} else if (c.was_queued) {
		/* S18: it goes where it may run, once this lock is dropped. */
		t->p.scx.flags &= ~SCX_TASK_QUEUED;
		smp_store_release(&t->state, SL_TASK_WAKING);
		defer_migration(this_cpu, t);
	}
	this_cpu->holds_lock = false;
	sl_unlock(&c.cpu->lock);
	flush(this_cpu);
}

/*
 * @weight: 1..10000; 0: the one that @t has, of which the policy hears anew (S17).
 * Context: no lock held, any CPU.
 */
void sl_task_set_weight(struct sl_task *t, u32 weight)
{
	struct change c;

	SL_ASSERT(weight <= 10000);
	if (!t->is_attached) {
		WRITE_ONCE(t->weight, weight);
		return;
	}
	c = begin_change(t);
	if (weight)
		WRITE_ONCE(t->weight, weight);
	WRITE_ONCE(t->p.scx.weight, READ_ONCE(t->weight));
	SL_CALL_OP(sl_this_cpu(), set_weight, t, &t->p, t->p.scx.weight);
	end_change(t, c);
}

/*
 * @t ends, and leaves its group before that: Linux with autogroups takes it off its queue
 * and puts it back. Context: no lock held, on the CPU where @t runs.
 */
void sl_task_leave_group(struct sl_task *t)
{
	sl_task_set_exiting(t);
	end_change(t, begin_change(t));
}

/*
 * A mask that @t has already is no change, and leaves its queue alone (S17). Context: @mask stays
 * as it is for as long as the core: a policy may read it on any CPU, without a lock.
 */
static void set_cpus_allowed(struct sl_task *t, const struct cpumask *mask)
{
	struct change c;
	u32 nr = 0;

	for (u32 i = 0; i < sl_core.nr_cpus; i++)
		nr += sl_mask_test(mask, i);
	SL_ASSERT(nr > 0);
	if (t->is_bound)
		return;
	if (!t->is_attached)
		return set_mask(t, mask, nr);
	if (mask_equal(READ_ONCE(t->p.cpus_ptr), mask))
		return;
	c = begin_change(t);
	set_mask(t, mask, nr);
	SL_CALL_OP(sl_this_cpu(), set_cpumask, t, &t->p, mask);
	end_change(t, c);
}

/**
 * sl_task_set_affinity - the CPUs that a task asks for, as by sched_setaffinity()
 * @t: set up
 * @mask: the caller's; the core keeps a copy, one for all tasks that ask for the same
 *
 * It gets those of them that its cgroup has (S49), and keeps them all for when it is in
 * another one. A task whose migration is disabled stays where it is until that ends. Copies
 * stay as long as the core, and each call looks through them: no matter with some hundred.
 *
 * Context: no lock held, any CPU, which does nothing else meanwhile, even for a new task.
 * Return: 0; -EINVAL: this machine, or its cgroup, has none of them; -ENOMEM. Then nothing is
 * changed.
 */
int sl_task_set_affinity(struct sl_task *t, const struct cpumask *mask)
{
	const struct cpumask *cpus = cpuset_cpus(t->p.cgroups->dfl_cgrp);
	const struct cpumask *user, *allowed;
	struct cpumask both;

	if (!masks_meet(&both, mask, cpus))
		return -EINVAL;
	user = try_keep_mask(mask);
	allowed = user && cpus != &sl_core.possible ? try_keep_mask(&both) : user;
	if (!allowed)
		return -ENOMEM;
	smp_store_release(&t->user_mask, user);
	set_cpus_allowed(t, allowed);
	return 0;
}
