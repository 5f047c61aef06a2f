/* SPDX-License-Identifier: MIT */
/*
 * player.c - runs one task of a workload program, verb by verb.
 *
 * Called by each host that runs real code, in the task's own context. Relies on
 * sl_program_check(): nothing here looks twice whether an index is in range.
 *
 * Read next: work.c, what the `work` verb computes.
 */
#include "player.h"

/* A release that is now has come, unless the task went on from there already. */
static int play_period(struct sl_player *p, u64 period_ns)
{
	u64 since_ns = p->ops->now_ns(p) - p->arrival_ns;
	u64 due_ns = since_ns / period_ns * period_ns;

	if (due_ns < since_ns || due_ns == p->released_ns)
		due_ns += period_ns;
	p->released_ns = due_ns;
	return due_ns > since_ns ?
		p->ops->sleep_until(p, p->arrival_ns + due_ns) : 0;
}

/* The slot holds the last time the timer was due, counted from arrival. */
static int play_timer(struct sl_player *p, const struct sl_program_op *op)
{
	u64 since_ns = p->ops->now_ns(p) - p->arrival_ns;
	u64 *due_ns = &p->slots[op->slot];

	*due_ns += sl_program_operand(p->program, op, p->slots);
	if (since_ns < *due_ns)
		return p->ops->sleep_until(p, p->arrival_ns + *due_ns);
	if (!op->a)
		*due_ns = since_ns;
	return 0;
}

static int play_await(struct sl_player *p, const struct sl_program_op *op)
{
	u32 lock = op->b ? op->b - 1 : SL_PROGRAM_NONE;

	return p->ops->await ? p->ops->await(p, op->a, lock) : SL_PLAYER_NO_VERB;
}

static int play_signal(struct sl_player *p, const struct sl_program_op *op)
{
	return p->ops->signal ? p->ops->signal(p, op->a, op->b) :
				SL_PLAYER_NO_VERB;
}

static int play_spawn(struct sl_player *p, const struct sl_program_op *op)
{
	u64 child_idx = p->slots[op->slot];
	int failed;

	if (child_idx >= op->b)
		return SL_PLAYER_SPAWNED_OUT;
	failed = p->ops->spawn(p, op->a + child_idx);
	if (failed)
		return failed;
	p->slots[op->slot]++;
	p->nr_spawned++;
	return 0;
}

static int play_wait(struct sl_player *p, u64 children)
{
	u64 left = p->nr_spawned - p->nr_awaited;

	if (children > left)
		return SL_PLAYER_WAIT_FOR_NONE;
	if (!children)
		children = left;
	p->nr_awaited += children;
	return children ? p->ops->wait(p, children) : 0;
}

/* A round of a loop begins at the op behind LOOP; LOOP itself is met once. */
static void enter_loop(struct sl_player *p, const struct sl_program_op *op)
{
	p->slots[op->slot] = op->b;
}

static void end_round(struct sl_player *p, const struct sl_program_op *op)
{
	const struct sl_program_op *loop = op - p->pc + op->a;

	/* 0 rounds: endless. */
	if (!loop->b || --p->slots[op->slot])
		p->pc = op->a;
}

/* Everything but EXIT, LOOP and END. */
static int play_verb(struct sl_player *p, const struct sl_program_op *op)
{
	const struct sl_player_ops *ops = p->ops;
	u64 b = sl_program_operand(p->program, op, p->slots);

	switch (op->verb) {
	case SL_VERB_RUN:
		return b ? ops->run(p, b) : 0;
	case SL_VERB_WORK:
		return ops->work(p, op->a, b);
	case SL_VERB_SLEEP:
		return ops->sleep_until(p, ops->now_ns(p) + b);
	case SL_VERB_PERIOD:
		return play_period(p, b);
	case SL_VERB_READ:
		return ops->read(p, b, op->a, op->flags);
	case SL_VERB_WRITE:
		return ops->write(p, b, op->a, op->flags);
	case SL_VERB_YIELD:
		return ops->yield(p);
	case SL_VERB_LOCK:
		return ops->lock(p, op->a);
	case SL_VERB_UNLOCK:
		return ops->unlock(p, op->a);
	case SL_VERB_SEND:
		return ops->send(p, op->a, b);
	case SL_VERB_RECV:
		return ops->recv(p, op->a, b);
	case SL_VERB_BARRIER:
		return ops->barrier(p, op->a);
	case SL_VERB_AWAIT:
		return play_await(p, op);
	case SL_VERB_SIGNAL:
		return play_signal(p, op);
	case SL_VERB_TIMER:
		return play_timer(p, op);
	case SL_VERB_SPAWN:
		return play_spawn(p, op);
	case SL_VERB_WAIT:
		return play_wait(p, op->a);
	case SL_VERB_SET:
		return ops->set(p, op->a, b);
	}
	return 0;
}

int sl_player_run(struct sl_player *p)
{
	const struct sl_program_task *task =
		&sl_program_tasks(p->program)[p->task];
	const struct sl_program_op *ops =
		sl_program_ops(p->program) + task->op_first;
	int failed;

	for (;; p->pc++) {
		const struct sl_program_op *op = &ops[p->pc];

		switch (op->verb) {
		case SL_VERB_EXIT:
			return 0;
		case SL_VERB_LOOP:
			enter_loop(p, op);
			break;
		case SL_VERB_END:
			end_round(p, op);
			break;
		default:
			failed = play_verb(p, op);
			if (failed)
				return failed;
		}
	}
}
