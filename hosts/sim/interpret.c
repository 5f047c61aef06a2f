/* SPDX-License-Identifier: MIT */
/*
 * interpret.c - plays a task's program up to the next op that takes time.
 *
 * Called by cpu.c for the task that runs, when its burst is over. What tasks
 * wait for is player/objects.c's. player/player.c plays the same programs on
 * hosts that run real code.
 *
 * Read next: device.c; include/schedlab/program.h for the verbs.
 */
#include "sim.h"

#define ZERO_OPS_MAX 20000000

/* The running task blocks. */
static enum sim_next block(struct sim_task *t, const char *waits_for)
{
	sim_prepare_block(t, waits_for);
	return SIM_NEXT_BLOCK;
}

static void complete(struct sim_task *waiter, struct sim_task *by, u64 wake_flags)
{
	sim_wake(waiter, wake_flags, by->core.p.pid);
}

static enum sim_next sleep_until(struct sim_task *t, u64 at_ns)
{
	enum sim_next next = block(t, "sleep");

	sim_heap_push(at_ns + sim.options->costs.wakeup_ns, SIM_EVENT_WAKE, t);
	sim.nr_wakes++;
	return next;
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
	sim_fail("program", t->core.p.pid, is_lock ?
		 "%s[%d] locks '%s', which it holds already" :
		 "%s[%d] unlocks '%s', which it does not hold",
		 t->core.p.comm, t->core.p.pid,
		 sl_program_string(sim.program,
				   sl_program_objects(sim.program)[object].name));
}

/* Start the life of @t, on the CPU of @parent or, from outside, on CPU 0. */
void sim_task_begin(struct sim_task *t, struct sim_task *parent)
{
	const struct sl_program_task *pt =
		&sl_program_tasks(sim.program)[t - sim.tasks];
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

	t->parent = parent;
	t->arrival_ns = sim_now_ns;
	sim.nr_started++;
	if (sim_start(t, &attr, parent))
		sim_fail("program", t->core.p.pid,
			 "no room for task %s[%d]: the task_attrs map is full",
			 t->core.p.comm, t->core.p.pid);
}

static void spawn(struct sim_task *t, const struct sl_program_op *op)
{
	u64 which = t->slots[op->slot];

	if (which >= op->b) {
		sim_fail("program", t->core.p.pid,
			 "%s[%d] spawns more than its %llu children",
			 t->core.p.comm, t->core.p.pid,
			 (unsigned long long)op->b);
		return;
	}
	t->slots[op->slot]++;
	t->nr_unawaited++;
	sim_task_begin(&sim.tasks[op->a + which], t);
}

/* Return: false if @t waits for children that have not ended. */
static bool wait_children(struct sim_task *t, u32 children)
{
	if (children > t->nr_unawaited) {
		sim_fail("program", t->core.p.pid,
			 "%s[%d] waits for %u children, of which only %u exist",
			 t->core.p.comm, t->core.p.pid, children,
			 t->nr_unawaited);
		return true;
	}
	if (!children)
		children = t->nr_unawaited;
	t->nr_unawaited -= children;
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
	if (!parent->nr_children_needed ||
	    parent->nr_children < parent->nr_children_needed)
		return;
	parent->nr_children -= parent->nr_children_needed;
	parent->nr_children_needed = 0;
	complete(parent, t, 0);
}

/*
 * One call of a read or write at a time: first its CPU time, then, if it goes
 * to the device, the wait. Return: what the task does next; @is_done is set
 * when all calls are over.
 */
static enum sim_next transfer(struct sim_task *t,
			      const struct sl_program_op *op, bool *is_done)
{
	bool to_device = op->flags & (SL_OP_SYNC | SL_OP_DIRECT);
	u64 call_bytes;

	*is_done = false;
	if (!t->io_left_bytes && !t->is_in_call) {
		t->io_left_bytes = sl_program_operand(sim.program, op, t->slots);
		if (!t->io_left_bytes) {
			*is_done = true;
			return SIM_NEXT_RUN;
		}
	}
	call_bytes = op->a && op->a < t->io_left_bytes ? op->a :
							 t->io_left_bytes;
	if (!t->is_in_call && sim.options->device.call_ns) {
		t->is_in_call = true;
		t->remaining_ns = sim.options->device.call_ns;
		return SIM_NEXT_RUN;
	}
	t->is_in_call = false;
	t->io_left_bytes -= call_bytes;
	*is_done = !t->io_left_bytes;
	if (!to_device)
		return SIM_NEXT_RUN;
	sim_device_request(t, call_bytes);
	return block(t, "device");
}

static void end_round(struct sim_task *t, const struct sl_program_op *op)
{
	const struct sl_program_op *loop = &t->ops[op->a];

	if (!loop->b || --t->slots[op->slot])
		t->pc = op->a;
}

/*
 * A release that is now has come, unless the task went on from there already.
 * Return: 0 if it has, so that @t goes on at once.
 */
static u64 next_period_ns(struct sim_task *t, u64 period_ns)
{
	u64 since_ns = sim_now_ns - t->arrival_ns;
	u64 due_ns = since_ns / period_ns * period_ns;

	if (due_ns < since_ns || due_ns == t->released_ns)
		due_ns += period_ns;
	t->released_ns = due_ns;
	return due_ns > since_ns ? t->arrival_ns + due_ns : 0;
}

/* Return: 0 if the timer is due already, so that @t goes on at once. */
static u64 timer_due_ns(struct sim_task *t, const struct sl_program_op *op,
			u64 period_ns)
{
	u64 *due_ns = &t->slots[op->slot];	/* since arrival */
	u64 since_ns = sim_now_ns - t->arrival_ns;

	*due_ns += period_ns;
	if (since_ns < *due_ns)
		return t->arrival_ns + *due_ns;
	if (!op->a)
		*due_ns = since_ns;
	return 0;
}

/* Return: whether the task now sleeps. */
static bool sleep_by(struct sim_task *t, const struct sl_program_op *op)
{
	u64 b = sl_program_operand(sim.program, op, t->slots);
	u64 at_ns = sim_now_ns + b;

	if (op->verb == SL_VERB_PERIOD)
		at_ns = next_period_ns(t, b);
	else if (op->verb == SL_VERB_TIMER)
		at_ns = timer_due_ns(t, op, b);
	if (op->verb != SL_VERB_SLEEP && !at_ns)
		return false;
	sleep_until(t, at_ns);
	return true;
}

/* Ops on objects. Return: false if the task has announced that it blocks. */
static bool use_object(struct sim_task *t, const struct sl_program_op *op)
{
	struct sl_object *o = &sim.objects[op->a];
	struct sl_waiter *w = &t->waiter;
	enum sl_object_result result = SL_OBJECT_DONE;
	u32 lock = op->a;

	switch (op->verb) {
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
		lock = op->b - 1;	/* unused if there is none */
		result = sl_object_await(o, w, op->b ? &sim.objects[lock] : NULL);
		break;
	case SL_VERB_SIGNAL:
		sl_object_signal(o, w, op->b);
		break;
	case SL_VERB_SEND:
		result = sl_object_send(
			o, w, sl_program_operand(sim.program, op, t->slots));
		break;
	default:
		result = sl_object_recv(
			o, w, sl_program_operand(sim.program, op, t->slots));
	}
	if (result == SL_OBJECT_ERROR)
		fail_lock(t, lock, op->verb == SL_VERB_LOCK);
	return result != SL_OBJECT_WAITS;
}

static u64 work_ns(const struct sl_program_op *op, u64 units)
{
	return sim_time((unsigned __int128)units * sim.options->work_ps[op->a] /
			1000);
}

/*
 * A run is CPU time, the call after it included, up to this part of the run: so
 * programs are played where calls really take time, too, and a burst that is as
 * long as a tick is over with its call before the tick.
 */
#define CALL_IN_RUN_PART 128

static void start_burst(struct sim_task *t, const struct sl_program_op *op)
{
	u64 call_ns = sim.options->costs.call_ns;
	u64 b = sl_program_operand(sim.program, op, t->slots);

	if (op->verb == SL_VERB_WORK) {
		t->remaining_ns = sim_time((unsigned __int128)work_ns(op, b) +
					   t->owed_ns);
		t->owed_ns = 0;
		return;
	}
	if (call_ns > b / CALL_IN_RUN_PART)
		call_ns = b / CALL_IN_RUN_PART;
	t->remaining_ns = b - call_ns + t->owed_ns;
	t->owed_ns = call_ns;
}

/*
 * What it takes to begin, and to call the kernel, comes before the op itself.
 * Return: true if @t has to do that first.
 */
static bool must_pay(struct sim_task *t, const struct sl_program_op *op)
{
	const struct sim_costs *costs = &sim.options->costs;
	u64 cost_ns = 0;

	if (t->has_paid)
		return false;
	t->has_paid = true;
	if (!t->has_begun)
		cost_ns = costs->start_ns;
	t->has_begun = true;
	switch (op->verb) {
	case SL_VERB_RUN:
	case SL_VERB_WORK:
	case SL_VERB_LOOP:
	case SL_VERB_END:
		break;
	case SL_VERB_READ:	/* --io says what these cost */
	case SL_VERB_WRITE:
		cost_ns += t->owed_ns;
		t->owed_ns = 0;
		break;
	default:
		cost_ns += costs->call_ns;
		if (op->verb == SL_VERB_EXIT)
			cost_ns += costs->exit_ns;
		t->owed_ns = 0;
	}
	t->remaining_ns = cost_ns;
	return cost_ns > 0;
}

static void set_attr(struct sim_task *t, const struct sl_program_op *op)
{
	if (sl_task_set_attr(&t->core, op->a, op->b))
		sim_fail("program", t->core.p.pid,
			 "%s[%d] sets attribute %u to an impossible value",
			 t->core.p.comm, t->core.p.pid, op->a);
}

/* A loop of ops that take no time would hold virtual time still indefinitely. */
static bool is_spinning(struct sim_task *t)
{
	if (!sim.is_over && ++sim.nr_zero_ops <= ZERO_OPS_MAX)
		return false;
	sim_fail("program", t->core.p.pid,
		 "%s[%d] executes ops without end and without taking time",
		 t->core.p.comm, t->core.p.pid);
	return true;
}

/*
 * Ops that take no time of their own but may concern other tasks. The program
 * counter has moved on. Return: false if the task has announced that it blocks.
 */
static bool act(struct sim_task *t, const struct sl_program_op *op)
{
	switch (op->verb) {
	case SL_VERB_SPAWN:
		spawn(t, op);
		return true;
	case SL_VERB_WAIT:
		if (wait_children(t, op->a))
			return true;
		block(t, "children");
		return false;
	case SL_VERB_SET:
		set_attr(t, op);
		return true;
	default:
		return use_object(t, op);
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

/**
 * sim_interpret - go on with a task's program
 * @t: the running task; its burst is over
 *
 * An op that blocks is complete when the task is woken, so the program counter
 * moves on before it blocks; only a transfer comes back to its op.
 *
 * Return: what it does next. With SIM_NEXT_BLOCK the core already knows.
 */
enum sim_next sim_interpret(struct sim_task *t)
{
	enum sim_next next;
	bool is_done;

	for (;;) {
		const struct sl_program_op *op = &t->ops[t->pc];

		if (is_spinning(t))
			return SIM_NEXT_YIELD;
		if (must_pay(t, op))
			return SIM_NEXT_RUN;
		t->has_paid = false;
		switch (op->verb) {
		case SL_VERB_EXIT:
			exit_task(t);
			return SIM_NEXT_EXIT;
		case SL_VERB_RUN:
		case SL_VERB_WORK:
			t->pc++;
			start_burst(t, op);
			if (t->remaining_ns)
				return SIM_NEXT_RUN;
			break;
		case SL_VERB_SLEEP:
		case SL_VERB_PERIOD:
		case SL_VERB_TIMER:
			t->pc++;
			if (sleep_by(t, op))
				return SIM_NEXT_BLOCK;
			break;
		case SL_VERB_READ:
		case SL_VERB_WRITE:
			next = transfer(t, op, &is_done);
			if (is_done)
				t->pc++;
			if (next == SIM_NEXT_BLOCK || t->remaining_ns)
				return next;
			break;
		case SL_VERB_YIELD:
			t->pc++;
			return SIM_NEXT_YIELD;
		case SL_VERB_LOOP:
			t->slots[op->slot] = op->b;
			t->pc++;
			break;
		case SL_VERB_END:
			end_round(t, op);
			t->pc++;
			break;
		default:
			t->pc++;
			if (!act(t, op))
				return SIM_NEXT_BLOCK;
			if (is_kicked())
				return SIM_NEXT_KICKED;
		}
	}
}
