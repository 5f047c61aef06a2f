/* SPDX-License-Identifier: MIT */
/*
 * player.c - plays one task of a workload program, op by op.
 *
 * Called by each host, in the task's own context. Relies on sl_program_check():
 * nothing here looks twice whether an index is in range.
 *
 * Read next: work.c, what the `work` verb computes.
 */
#include "player.h"

static struct sl_program_op fault(int why)
{
	return (struct sl_program_op){ .verb = SL_STEP_FAULT, .b = (u64)(s64)why };
}

static struct sl_program_op sleep_until(u64 at_ns)
{
	return (struct sl_program_op){ .verb = SL_VERB_SLEEP, .b = at_ns };
}

static const struct sl_program_op none = { .verb = SL_STEP_NONE };

/* A release that is now has come, unless the task went on from there already. */
static struct sl_program_op take_period(struct sl_player *p, u64 period_ns, u64 now_ns)
{
	u64 since_ns = now_ns - p->arrival_ns;
	u64 due_ns = since_ns / period_ns * period_ns;

	if (due_ns < since_ns || due_ns == p->released_ns)
		due_ns += period_ns;
	p->released_ns = due_ns;
	return due_ns > since_ns ? sleep_until(p->arrival_ns + due_ns) : none;
}

/* The slot holds the last time the timer was due, counted from arrival. */
static struct sl_program_op take_timer(struct sl_player *p, const struct sl_program_op *op,
				       u64 period_ns, u64 now_ns)
{
	u64 since_ns = now_ns - p->arrival_ns;
	u64 *due_ns = &p->slots[op->slot];

	*due_ns += period_ns;
	if (since_ns < *due_ns)
		return sleep_until(p->arrival_ns + *due_ns);
	if (!op->a)
		*due_ns = since_ns;
	return none;
}

static struct sl_program_op take_spawn(struct sl_player *p, struct sl_program_op step)
{
	u64 *child_idx = &p->slots[step.slot];

	if (*child_idx >= step.b)
		return fault(SL_PLAYER_SPAWNED_OUT);
	step.a += (u32)(*child_idx)++;
	p->nr_spawned++;
	return step;
}

static struct sl_program_op take_wait(struct sl_player *p, struct sl_program_op step)
{
	u32 left = p->nr_spawned - p->nr_awaited;

	if (step.a > left)
		return fault(SL_PLAYER_WAIT_FOR_NONE);
	step.b = step.a ? step.a : left;
	p->nr_awaited += (u32)step.b;
	return step.b ? step : none;
}

/* See sl_player_take(). */
struct sl_program_op sl_player_take_other(struct sl_player *p, const struct sl_program_op *op,
					  u64 now_ns)
{
	struct sl_program_op step = *op;

	if (op->verb == SL_VERB_EXIT)
		return step;
	p->next++;
	step.b = sl_program_operand(p->program, op, p->slots);
	switch (op->verb) {
	case SL_VERB_PERIOD:
		return take_period(p, step.b, now_ns);
	case SL_VERB_TIMER:
		return take_timer(p, op, step.b, now_ns);
	case SL_VERB_SPAWN:
		return take_spawn(p, step);
	case SL_VERB_WAIT:
		return take_wait(p, step);
	default:
		return step;
	}
}

/* Everything but EXIT. */
static int do_step(struct sl_player *p, const struct sl_program_op *step)
{
	const struct sl_player_ops *ops = p->ops;
	u64 b = step->b;

	switch (step->verb) {
	case SL_VERB_RUN:
		return b ? ops->run(p, b) : 0;
	case SL_VERB_WORK:
		return ops->work(p, step->a, b);
	case SL_VERB_SLEEP:
		return ops->sleep_until(p, b);
	case SL_VERB_READ:
		return ops->read(p, b, step->a, step->flags);
	case SL_VERB_WRITE:
		return ops->write(p, b, step->a, step->flags);
	case SL_VERB_YIELD:
		return ops->yield(p);
	case SL_VERB_LOCK:
		return ops->lock(p, step->a);
	case SL_VERB_UNLOCK:
		return ops->unlock(p, step->a);
	case SL_VERB_SEND:
		return ops->send(p, step->a, b);
	case SL_VERB_RECV:
		return ops->recv(p, step->a, b);
	case SL_VERB_BARRIER:
		return ops->barrier(p, step->a);
	case SL_VERB_AWAIT:
		return !ops->await ? SL_PLAYER_NO_VERB :
				     ops->await(p, step->a, b ? (u32)b - 1 : SL_PROGRAM_NONE);
	case SL_VERB_SIGNAL:
		return ops->signal ? ops->signal(p, step->a, b) : SL_PLAYER_NO_VERB;
	case SL_VERB_JOIN:
		return ops->join ? ops->join(p, step->a) : SL_PLAYER_NO_VERB;
	case SL_VERB_CHANGE:
		return ops->change ? ops->change(p, step->a, step->slot, b) : SL_PLAYER_NO_VERB;
	case SL_VERB_SPAWN:
		return ops->spawn(p, step->a);
	case SL_VERB_WAIT:
		return ops->wait(p, b);
	case SL_VERB_SET:
		return ops->set(p, step->a, b);
	case SL_STEP_FAULT:
		return (int)b;
	}
	return 0;
}

int sl_player_run(struct sl_player *p)
{
	u64 slots[SL_PROGRAM_SLOTS_MAX] = { 0 };
	int failed = 0;

	sl_player_begin(p, slots);
	while (!failed) {
		const struct sl_program_op *op = sl_player_peek(p);
		bool has_time = op->verb == SL_VERB_SLEEP || op->verb == SL_VERB_PERIOD ||
				op->verb == SL_VERB_TIMER;
		struct sl_program_op step;

		if (op->verb == SL_VERB_EXIT)
			return 0;
		step = sl_player_take(p, op, has_time ? p->ops->now_ns(p) : 0);
		failed = do_step(p, &step);
	}
	p->next--; /* the op at fault */
	return failed;
}
