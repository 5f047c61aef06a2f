/* SPDX-License-Identifier: MIT */
/*
 * interpret.c - plays a task's program up to the next op that takes time.
 *
 * Called by cpu.c for the task that runs, when its burst is over. Which op comes next
 * is player/player.c's, what tasks wait for player/objects.c's; here is what an op
 * costs, and what it does to virtual CPUs and the device.
 *
 * Read next: device.c; include/schedlab/program.h for the verbs.
 */
#include "sim.h"

#define ZERO_OPS_MAX 20000000

/* The running task blocks on what @waits_for names. */
static enum sim_next block(struct sim_task *t, const char *waits_for)
{
	sim_prepare_block(t);
	t->waits_for = waits_for;
	return SIM_NEXT_BLOCK;
}

static void complete(struct sim_task *waiter, struct sim_task *by, u64 wake_flags)
{
	sim_wake(waiter, wake_flags, by->core.p.pid);
}

static enum sim_next sleep_until(struct sim_task *t, u64 at_ns)
{
	sim_prepare_block(t);
	sim_heap_push(at_ns + sim.options->costs.wakeup_ns, SIM_EVENT_WAKE, t->player.task);
	return SIM_NEXT_BLOCK;
}

/* The thread of the policy's user half sleeps for its period. A wake-up of it ends no deadlock. */
void sim_user_thread_sleep(struct sim_task *t)
{
	sim_heap_push(sim_now_ns + sim_policy_file.user_thread_ns[0] + sim.options->costs.wakeup_ns,
		      SIM_EVENT_POLL, t->player.task);
}

/* ---- what player/objects.c asks ------------------------------------------ */

void sl_wait_block(struct sl_waiter *w, const char *why)
{
	block(w->task, why);
}

void sl_wait_change(struct sl_waiter *w, const char *why)
{
	((struct sim_task *)w->task)->waits_for = why;
}

void sl_wait_wake(struct sl_waiter *w, bool is_sync, const struct sl_waiter *by)
{
	complete(w->task, by->task, is_sync ? SCX_WAKE_SYNC : 0);
}

/* --------------------------------------------------------------------------- */

static void fail_lock(struct sim_task *t, u32 object, bool is_lock)
{
	sim_fail("program", t->core.p.pid,
		 is_lock ? "%s[%d] locks '%s', which it holds already" :
			   "%s[%d] unlocks '%s', which it does not hold",
		 t->core.p.comm, t->core.p.pid,
		 sl_program_string(sim.program, sl_program_objects(sim.program)[object].name));
}

/* Return: whether it is there; false: the run has failed. */
static bool attach(struct sim_task *t, struct sim_task *parent)
{
	const struct sl_program_task *pt = &sl_program_tasks(sim.program)[t - sim.tasks];
	struct task_attr attr = {
		.deadline_ns = pt->deadline_ns,
		.burst_ns = pt->burst_ns,
		.priority = pt->priority,
		.tickets = pt->tickets,
		.credits = pt->credits,
		.cap_percent = pt->cap_percent,
		.group = pt->group,
		.given = pt->attr_given & ~(1U << TASK_ATTR_WEIGHT),
	};

	if (parent)
		sl_task_set_cgroup(&t->core, parent->core.p.cgroups->dfl_cgrp);
	if (!sim_attach(t, &attr, parent))
		return true;
	sim_fail("program", t->core.p.pid, "no room for task %s[%d]: the task_attrs map is full",
		 t->core.p.comm, t->core.p.pid);
	return false;
}

/*
 * Where an arrival is a wake-up, all tasks exist before the policy is loaded, which
 * says itself if it has no room for them.
 */
void sim_task_attach_all(void)
{
	const struct sl_program_task *pts = sl_program_tasks(sim.program);

	for (u32 i = 0; i < sim.nr_tasks; i++)
		attach(&sim.tasks[i],
		       pts[i].parent == SL_PROGRAM_NONE ? NULL : &sim.tasks[pts[i].parent]);
}

/* Start the life of @t, on the CPU of @parent or, from outside, on CPU 0. */
void sim_task_begin(struct sim_task *t, struct sim_task *parent)
{
	t->parent = parent;
	if (!sim.options->arrivals_wake && !attach(t, parent))
		return;
	/* Its parent may have moved since it was attached. */
	if (sim.options->arrivals_wake && parent &&
	    sl_task_set_cgroup(&t->core, parent->core.p.cgroups->dfl_cgrp))
		sim_fail("program", t->core.p.pid, "%s[%d] cannot join its parent's group",
			 t->core.p.comm, t->core.p.pid);
	t->player.arrival_ns = sim_now_ns;
	sim.nr_started++;
	sim_start(t, parent);
}

static void fail_step(struct sim_task *t, const struct sl_program_op *op)
{
	if (op->verb == SL_VERB_SPAWN)
		sim_fail("program", t->core.p.pid, "%s[%d] spawns more than its %llu children",
			 t->core.p.comm, t->core.p.pid, (unsigned long long)op->b);
	else
		sim_fail("program", t->core.p.pid,
			 "%s[%d] waits for %u children, of which only %u exist", t->core.p.comm,
			 t->core.p.pid, op->a, t->player.nr_spawned - t->player.nr_awaited);
}

/* Return: false if @t waits for children that have not ended. */
static bool wait_children(struct sim_task *t, u32 children)
{
	if (t->nr_children >= children) {
		t->nr_children -= children;
		return true;
	}
	t->nr_children_needed = children;
	return false;
}

static void exit_task(struct sim_task *t)
{
	struct sim_task *parent = t->parent;

	sl_task_set_exiting(&t->core);
	sim.result->nr_exited++;
	if (!parent)
		return;
	parent->nr_children++;
	if (!parent->nr_children_needed || parent->nr_children < parent->nr_children_needed)
		return;
	parent->nr_children -= parent->nr_children_needed;
	parent->nr_children_needed = 0;
	complete(parent, t, 0);
}

/* What comes next while a transfer or a move between groups is not over, or for a policy's user half. */
enum { VERB_TRANSFER = SL_NR_VERBS, VERB_MOVE, VERB_USER_HALF, VERB_USER_THREAD };
static const struct sl_program_op transfer_op = { .verb = VERB_TRANSFER };
static const struct sl_program_op move_op = { .verb = VERB_MOVE };
const struct sl_program_op sim_user_half_op = { .verb = VERB_USER_HALF };
const struct sl_program_op sim_user_thread_op = { .verb = VERB_USER_THREAD };

static void begin_transfer(struct sim_task *t, const struct sl_program_op *io)
{
	if (!io->b)
		return;
	t->io = *io;
	t->io_left_bytes = io->b;
	t->after = t->player.next;
	t->player.next = &transfer_op;
}

/*
 * One call of a read or write at a time: first its CPU time, then, if it goes
 * to the device, the wait. Return: what the task does next.
 */
static enum sim_next transfer(struct sim_task *t)
{
	const struct sl_program_op *io = &t->io;
	u64 call_bytes = io->a && io->a < t->io_left_bytes ? io->a : t->io_left_bytes;

	if (!t->is_in_call && sim.options->device.call_ns) {
		t->is_in_call = true;
		t->remaining_ns = sim.options->device.call_ns;
		return SIM_NEXT_RUN;
	}
	t->is_in_call = false;
	t->io_left_bytes -= call_bytes;
	if (!t->io_left_bytes)
		t->player.next = t->after;
	if (!(io->flags & (SL_OP_SYNC | SL_OP_DIRECT)))
		return SIM_NEXT_RUN;
	sim_device_request(t, call_bytes);
	return block(t, "device");
}

/* All objects; wake-ups come in the middle of a step. Taken before any lock of the core. */
static sl_lock_t objects_lock;

/* Steps on objects. Return: false if the task has announced that it blocks. */
static bool use_object(struct sim_task *t, const struct sl_program_op *step)
{
	struct sl_object *o = &sim.objects[step->a];
	struct sl_waiter *w = &t->waiter;
	enum sl_object_result result = SL_OBJECT_DONE;
	u32 lock = step->a;

	sl_lock(&objects_lock);
	switch (step->verb) {
	case SL_VERB_LOCK:
		result = sl_object_lock(o, w);
		break;
	case SL_VERB_UNLOCK:
		result = sl_object_unlock(o, w);
		break;
	case SL_VERB_BARRIER:
		result = sl_object_arrive(o, w);
		break;
	case SL_VERB_AWAIT:
		lock = step->b - 1; /* unused if there is none */
		result = sl_object_await(o, w, step->b ? &sim.objects[lock] : NULL);
		break;
	case SL_VERB_SIGNAL:
		sl_object_signal(o, w, step->b);
		break;
	case SL_VERB_SEND:
		result = sl_object_send(o, w, step->b);
		break;
	default:
		result = sl_object_recv(o, w, step->b);
	}
	sl_unlock(&objects_lock);
	if (result == SL_OBJECT_ERROR)
		fail_lock(t, lock, step->verb == SL_VERB_LOCK);
	return result != SL_OBJECT_WAITS;
}

static u64 work_ns(const struct sl_program_op *step, u64 units)
{
	return sim_time((unsigned __int128)units * sim.options->work_ps[step->a] / 1000);
}

/*
 * A run is CPU time, the call after it included and what calls took since the last run, each up to this
 * part of the run: so programs are played where calls really take time, too, and a burst
 * that is as long as a tick is over with its call before the tick.
 */
#define CALL_IN_RUN_PART 128

static __noinline void start_run(struct sim_task *t, u64 ns)
{
	u64 call_ns = sim.options->costs.call_ns;
	u64 part_ns = ns / CALL_IN_RUN_PART;

	if (call_ns > part_ns)
		call_ns = part_ns;
	t->remaining_ns = ns - call_ns - (t->called_ns < part_ns ? t->called_ns : part_ns) +
			  t->owed_ns;
	t->owed_ns = call_ns;
	t->called_ns = 0;
}

static void start_work(struct sim_task *t, const struct sl_program_op *step)
{
	t->remaining_ns = sim_time((unsigned __int128)work_ns(step, step->b) + t->owed_ns);
	t->owed_ns = 0;
}

/* What it takes to begin, and to call the kernel, comes before the op itself. */
static u64 cost_before(struct sim_task *t, const struct sl_program_op *op)
{
	const struct sim_costs *costs = &sim.options->costs;
	u64 cost_ns = 0;

	if (unlikely(!t->has_begun)) {
		t->has_begun = true;
		cost_ns = costs->start_ns;
	}
	if (op->verb == SL_VERB_RUN || op->verb == SL_VERB_WORK)
		return cost_ns;
	if (op->verb == SL_VERB_READ || op->verb == SL_VERB_WRITE) {
		cost_ns += t->owed_ns; /* --io says what these cost */
	} else {
		cost_ns += costs->call_ns;
		t->called_ns += costs->call_ns - t->owed_ns;
	}
	if (unlikely(costs->jitter_ns))
		cost_ns += sim_jitter_ns(sim.nr_calls++);
	if (op->verb == SL_VERB_EXIT)
		cost_ns += costs->exit_ns;
	t->owed_ns = 0;
	return cost_ns;
}

/* Return: true if @t has to do that first. */
static __noinline bool must_pay(struct sim_task *t, const struct sl_program_op *op)
{
	if (t->has_paid || t->has_left || op->verb >= SL_NR_VERBS) {
		t->has_paid = false;
		return false;
	}
	t->remaining_ns = cost_before(t, op);
	t->has_paid = t->remaining_ns;
	/* It may be preempted from here on, and be queued so. */
	if (t->has_paid && op->verb == SL_VERB_EXIT)
		sl_task_set_exiting(&t->core);
	return t->has_paid;
}

static void set_attr(struct sim_task *t, u32 key, u64 value)
{
	if (sl_task_set_attr(&t->core, key, value))
		sim_fail("program", t->core.p.pid,
			 "%s[%d] sets attribute %u to an impossible value", t->core.p.comm,
			 t->core.p.pid, key);
}

/* @t changes itself or another task, which may be on any CPU, or not be there yet. */
static void change(struct sim_task *t, const struct sl_program_op *step)
{
	struct sim_task *changed = step->a == SL_PROGRAM_NONE ? t : &sim.tasks[step->a];
	struct cpumask mask;

	if (step->slot != SL_CHANGE_AFFINITY) {
		set_attr(changed, step->slot, step->b);
		return;
	}
	if (!sim_mask(&mask, step->b >> 32, (u32)step->b))
		sim_fail("usage", t->core.p.pid,
			 "%s[%d] sets a mask that has none of the %u CPUs of this run",
			 t->core.p.comm, t->core.p.pid, sim.options->nr_cpus);
	else if (sl_task_set_affinity(&changed->core, &mask))
		sim_fail("program", t->core.p.pid,
			 "%s[%d] sets a mask that has none of the CPUs of %s[%d]'s group (EINVAL)",
			 t->core.p.comm, t->core.p.pid, changed->core.p.comm, changed->core.p.pid);
}

static void join_group(struct sim_task *t, u32 object)
{
	int err = sl_task_set_cgroup(&t->core, sim.groups[object]);

	if (err > 0) {
		/* It goes to a CPU of the group first. */
		t->after = t->player.next;
		t->player.next = &move_op;
	} else if (err)
		sim_fail("program", t->core.p.pid,
			 "%s[%d] cannot join group %s: cgroup_prep_move() returned %d",
			 t->core.p.comm, t->core.p.pid,
			 sl_program_string(sim.program,
					   sl_program_objects(sim.program)[object].name),
			 err);
}

/* A loop of ops that take no time would hold virtual time still indefinitely. */
static bool is_spinning(struct sim_task *t)
{
	if (!sim.is_over && ++sim.nr_zero_ops <= ZERO_OPS_MAX)
		return false;
	sim_fail("program", t->core.p.pid,
		 "%s[%d] executes ops without end and without taking time", t->core.p.comm,
		 t->core.p.pid);
	return true;
}

/*
 * Steps that take no time of their own but may concern other tasks. Return: false if the
 * task has announced that it blocks.
 */
static bool act(struct sim_task *t, const struct sl_program_op *step)
{
	switch (step->verb) {
	case SL_VERB_SPAWN:
		sim_task_begin(&sim.tasks[step->a], t);
		return true;
	case SL_VERB_WAIT:
		if (wait_children(t, (u32)step->b))
			return true;
		block(t, "children");
		return false;
	case SL_VERB_SET:
		set_attr(t, step->a, step->b);
		return true;
	case SL_VERB_CHANGE:
		change(t, step);
		return true;
	case SL_VERB_JOIN:
		join_group(t, step->a);
		return true;
	default:
		return use_object(t, step);
	}
}

/*
 * A task that the op woke may have the CPU kicked, by the policy. A real task would not
 * get to its next op before that.
 */
static bool is_kicked(void)
{
	return sim.cpus[sim_cpu_idx].resched_at_ns <= sim_now_ns;
}

/* A round of the policy's user half: its time, what it does, and a yield or, of its thread, a sleep. */
static enum sim_next play_user_half(struct sim_task *t, bool is_thread)
{
	const struct sl_policy_file *file = &sim_policy_file;

	t->is_in_call = !t->is_in_call;
	if (t->is_in_call) {
		t->remaining_ns = is_thread ? file->user_thread_ns[1] : *file->user_half_ns;
		return SIM_NEXT_RUN;
	}
	if (sl_report().is_bypassed)
		return block(t, "end");
	if (!is_thread) {
		file->user_half();
		return SIM_NEXT_YIELD;
	}
	file->user_thread();
	sim_prepare_block(t);
	sim_user_thread_sleep(t);
	return SIM_NEXT_BLOCK;
}

/* Ops beside RUN and SLEEP. Return: see do_op(). */
static __noinline enum sim_next do_other_op(struct sim_task *t, const struct sl_program_op *op)
{
	struct sl_program_op step;

	if (is_spinning(t))
		return SIM_NEXT_YIELD;
	if (op->verb == VERB_TRANSFER)
		return transfer(t);
	if (op->verb == VERB_MOVE) {
		/* The kick that is to bring it away may come late (--events). */
		if (sl_task_finish_move(&t->core))
			return SIM_NEXT_RESCHED;
		t->player.next = t->after;
		return is_kicked() ? SIM_NEXT_RESCHED : SIM_NEXT_RUN;
	}
	if (op->verb == VERB_USER_HALF || op->verb == VERB_USER_THREAD)
		return play_user_half(t, op->verb == VERB_USER_THREAD);
	if (op->verb == SL_VERB_EXIT && sim.options->exits_regroup && !t->has_left) {
		/* The CPU looks whether it may go on: its slice may be used up since the tick. */
		t->has_left = true;
		sl_task_leave_group(&t->core);
		return SIM_NEXT_RESCHED;
	}
	step = sl_player_take(&t->player, op, sim_now_ns);
	switch (step.verb) {
	case SL_VERB_EXIT:
		exit_task(t);
		return SIM_NEXT_EXIT;
	case SL_VERB_WORK:
		start_work(t, &step);
		return SIM_NEXT_RUN;
	case SL_VERB_SLEEP:
		return sleep_until(t, step.b);
	case SL_VERB_READ:
	case SL_VERB_WRITE:
		begin_transfer(t, &step);
		return SIM_NEXT_RUN;
	case SL_VERB_YIELD:
		return SIM_NEXT_YIELD;
	case SL_STEP_NONE:
		return SIM_NEXT_RUN;
	case SL_STEP_FAULT:
		fail_step(t, op);
		return SIM_NEXT_RUN;
	default:
		if (!act(t, &step))
			return SIM_NEXT_BLOCK;
		return is_kicked() ? SIM_NEXT_RESCHED : SIM_NEXT_RUN;
	}
}

/*
 * Return: what @t does next; SIM_NEXT_RUN without time left: the next op. Run and sleep
 * need no step, and take time, so that they cannot spin.
 */
sl_inline enum sim_next do_op(struct sim_task *t, const struct sl_program_op *op,
			      bool are_calls_free)
{
	if (op->verb == SL_VERB_RUN) {
		t->remaining_ns = sl_player_take_operand(&t->player, op);
		if (!are_calls_free)
			start_run(t, t->remaining_ns);
		return likely(t->remaining_ns) || !is_spinning(t) ? SIM_NEXT_RUN : SIM_NEXT_YIELD;
	}
	/* One of no time, too, ends by an event, of which loop.c counts how many come at once. */
	if (op->verb == SL_VERB_SLEEP)
		return sleep_until(t, sim_now_ns + sl_player_take_operand(&t->player, op));
	return do_other_op(t, op);
}

/* As sim_interpret(), where a program's calls take time, or CPUs have speeds. */
static __noinline enum sim_next interpret_with_costs(struct sim_task *t)
{
	enum sim_next next;

	do {
		const struct sl_program_op *op = sl_player_peek(&t->player);

		next = must_pay(t, op) ? SIM_NEXT_RUN : do_op(t, op, false);
	} while (next == SIM_NEXT_RUN && !t->remaining_ns);
	if (sim.has_speeds)
		sim_speed_begin_burst(t);
	return next;
}

/**
 * sim_interpret - go on with a task's program
 * @t: the running task; its burst is over
 *
 * An op that blocks is complete when the task is woken.
 *
 * Return: what it does next. With SIM_NEXT_BLOCK the core already knows.
 */
enum sim_next sim_interpret(struct sim_task *t)
{
	enum sim_next next;

	if (unlikely(!sim.are_calls_free))
		return interpret_with_costs(t);
	do {
		next = do_op(t, sl_player_peek(&t->player), true);
	} while (next == SIM_NEXT_RUN && !t->remaining_ns);
	return next;
}
