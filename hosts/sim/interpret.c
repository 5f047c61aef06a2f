/* SPDX-License-Identifier: MIT */
/*
 * interpret.c - plays a task's program up to the next op that takes time.
 *
 * Called by cpu.c for the task that runs, when its burst is over. Whoever can
 * complete another task's op does so: an unlock hands the lock over, data goes
 * to the reader that waited longest. So nobody is woken in vain, and waiters
 * leave in the order they came. player/player.c plays the same programs on
 * hosts that run real code.
 *
 * Read next: device.c; include/schedlab/program.h for the verbs.
 */
#include "sim.h"

#define ZERO_OPS_MAX 20000000

static void add_waiter(struct sim_task **first, struct sim_task **last,
		       struct sim_task *t)
{
	t->next_waiter = NULL;
	if (*first)
		(*last)->next_waiter = t;
	else
		*first = t;
	*last = t;
}

static struct sim_task *take_waiter(struct sim_task **first)
{
	struct sim_task *t = *first;

	if (t)
		*first = t->next_waiter;
	return t;
}

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

/* Return: false if @t now waits for the lock, which will be handed to it. */
static bool lock(struct sim_task *t, struct sim_object *o)
{
	if (!o->owner) {
		o->owner = t;
		return true;
	}
	if (o->owner == t) {
		sim_fail("program", t->core.p.pid,
			 "%s[%d] locks '%s', which it holds already",
			 t->core.p.comm, t->core.p.pid, o->name);
		return true;
	}
	block(t, "lock");
	add_waiter(&o->first, &o->last, t);
	return false;
}

static void unlock(struct sim_task *t, struct sim_object *o)
{
	if (o->owner != t) {
		sim_fail("program", t->core.p.pid,
			 "%s[%d] unlocks '%s', which it does not hold",
			 t->core.p.comm, t->core.p.pid, o->name);
		return;
	}
	o->owner = take_waiter(&o->first);
	if (o->owner)
		complete(o->owner, t, 0);
}

/* Move what can be moved for one waiter. Return: true if its op is complete. */
static bool move_bytes(struct sim_task *w, struct sim_object *o, bool is_send)
{
	u64 can = is_send ? o->param - o->level : o->level;
	u64 bytes = w->need_bytes < can ? w->need_bytes : can;

	w->need_bytes -= bytes;
	if (is_send)
		o->level += bytes;
	else
		o->level -= bytes;
	return !w->need_bytes;
}

/* Let the first waiter move what it can. Return: whether a byte has moved. */
static bool advance_waiter(struct sim_task **first, struct sim_object *o,
			   struct sim_task *by, bool is_send)
{
	struct sim_task *w = *first;
	u64 needed_bytes;

	if (!w)
		return false;
	needed_bytes = w->need_bytes;
	if (move_bytes(w, o, is_send))
		complete(take_waiter(first), by, SCX_WAKE_SYNC);
	return w->need_bytes != needed_bytes;
}

/*
 * After a change of a pipe: complete what has become possible, in order. A
 * message larger than the pipe goes through it in several steps.
 */
static void settle_pipe(struct sim_object *o, struct sim_task *by)
{
	bool has_changed;

	do {
		has_changed = advance_waiter(&o->first, o, by, false);
		has_changed |= advance_waiter(&o->senders, o, by, true);
	} while (has_changed);
}

/*
 * A stream of bytes, like Unix's: a send is over when all its bytes are in the
 * pipe, a receive when it has all it wants, whatever the pipe holds at once.
 * Return: false if @t now waits.
 */
static bool use_pipe(struct sim_task *t, struct sim_object *o, u64 bytes,
		     bool is_send)
{
	struct sim_task **first = is_send ? &o->senders : &o->first;
	struct sim_task **last = is_send ? &o->senders_last : &o->last;
	bool is_complete;

	t->need_bytes = bytes;
	is_complete = !*first && move_bytes(t, o, is_send);
	if (!is_complete) {
		/* Settling may complete it at once: then it will not block. */
		block(t, is_send ? "room in pipe" : "data in pipe");
		add_waiter(first, last, t);
	}
	settle_pipe(o, t);
	return is_complete;
}

static bool reach_barrier(struct sim_task *t, struct sim_object *o)
{
	struct sim_task *w;

	if (++o->level < o->param) {
		block(t, "barrier");
		add_waiter(&o->first, &o->last, t);
		return false;
	}
	o->level = 0;
	while ((w = take_waiter(&o->first)))
		complete(w, t, 0);
	return true;
}

/*
 * A task that waits for a condition stands behind its AWAIT; the lock it let go
 * of is named there. Whoever signals sends it on to wait for that lock, if need be.
 */
static void await(struct sim_task *t, struct sim_object *o, u64 lock_plus_1)
{
	if (lock_plus_1)
		unlock(t, &sim.objects[lock_plus_1 - 1]);
	block(t, "condition");
	add_waiter(&o->first, &o->last, t);
}

/* @w has been signalled by @by: wake it with its lock, or queue it for that. */
static void release_from_condition(struct sim_task *w, struct sim_task *by)
{
	u64 lock_plus_1 = w->ops[w->pc - 1].b;
	struct sim_object *o;

	if (!lock_plus_1) {
		complete(w, by, 0);
		return;
	}
	o = &sim.objects[lock_plus_1 - 1];
	if (!o->owner) {
		o->owner = w;
		complete(w, by, 0);
		return;
	}
	w->waits_for = "lock";
	add_waiter(&o->first, &o->last, w);
}

static void signal_condition(struct sim_task *t, struct sim_object *o, bool all)
{
	struct sim_task *w;

	while ((w = take_waiter(&o->first))) {
		release_from_condition(w, t);
		if (!all)
			return;
	}
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
	struct sim_object *o = &sim.objects[op->a];

	switch (op->verb) {
	case SL_VERB_LOCK:
		return lock(t, o);
	case SL_VERB_UNLOCK:
		unlock(t, o);
		return true;
	case SL_VERB_BARRIER:
		return reach_barrier(t, o);
	case SL_VERB_AWAIT:
		await(t, o, op->b);
		return false;
	case SL_VERB_SIGNAL:
		signal_condition(t, o, op->b);
		return true;
	default:
		return use_pipe(t, o,
				sl_program_operand(sim.program, op, t->slots),
				op->verb == SL_VERB_SEND);
	}
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

/* A loop of ops that take no time would hold virtual time still for ever. */
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
 * Whom the op woke may have the CPU kicked, by its policy. A real task would not
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
