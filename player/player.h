/* SPDX-License-Identifier: MIT */
/*
 * player.h - plays one task of a workload program, the same way on every host.
 *
 * The player knows the program: loops, tables, children, periods. It hands out one
 * op after the other with its operands resolved, and keeps the place:
 *
 *	op = sl_player_peek(p);			what comes next, for its costs
 *	step = sl_player_take(p, op, now_ns);	do this
 *
 * hosts/sim does so between two events. Where a task is real code (a Linux process,
 * a user-level thread, a process of the teaching kernel), sl_player_run() does it,
 * with a table of functions that return when a verb is done.
 *
 * Read next: player.c; hosts/linux/guest/play.c for a host's table.
 */
#ifndef PLAYER_PLAYER_H
#define PLAYER_PLAYER_H

#include "program.h"

struct sl_player;

/*
 * What a host does for each verb. Every function is called by the task itself
 * and returns when the verb is done: 0, or a negative number that ends the task
 * and comes back from sl_player_run(). None may be absent but await and signal,
 * on a host that has no conditions, join, on one without groups, and change; a task that needs one ends there.
 */
struct sl_player_ops {
	u64 (*now_ns)(struct sl_player *player);
	/* Use the CPU until the task has had @ns more of it. */
	int (*run)(struct sl_player *player, u64 ns);
	int (*work)(struct sl_player *player, u32 work, u64 units);
	/* Sleep until now_ns() is @at_ns or later. */
	int (*sleep_until)(struct sl_player *player, u64 at_ns);
	/* @bytes in calls of @chunk_bytes; @flags: SL_OP_SYNC, SL_OP_DIRECT. */
	int (*read)(struct sl_player *player, u64 bytes, u32 chunk_bytes, u8 flags);
	int (*write)(struct sl_player *player, u64 bytes, u32 chunk_bytes, u8 flags);
	int (*yield)(struct sl_player *player);
	int (*lock)(struct sl_player *player, u32 object);
	int (*unlock)(struct sl_player *player, u32 object);
	int (*send)(struct sl_player *player, u32 object, u64 bytes);
	int (*recv)(struct sl_player *player, u32 object, u64 bytes);
	int (*barrier)(struct sl_player *player, u32 object);
	/*
	 * Wait for a signal of condition @object; let go of @lock meanwhile and
	 * take it again (SL_PROGRAM_NONE: no lock). Letting go and waiting are
	 * one step: no signal by the next lock holder is missed.
	 */
	int (*await)(struct sl_player *player, u32 object, u32 lock);
	/* Wake the task that has waited longest, or all; without waiters: no effect. */
	int (*signal)(struct sl_player *player, u32 object, bool all);
	/* Move to the group @object. */
	int (*join)(struct sl_player *player, u32 object);
	/* Start task @task of the program. */
	int (*spawn)(struct sl_player *player, u32 task);
	/* Wait until @children more of the task's own children have ended. */
	int (*wait)(struct sl_player *player, u64 children);
	int (*set)(struct sl_player *player, u32 key, u64 value);
	/* Of @task of the program, or of itself (SL_PROGRAM_NONE): an attribute, or its CPUs. */
	int (*change)(struct sl_player *player, u32 task, u32 key, u64 value);
};

/* A task being played. The host sets the first group and may read the rest. */
struct sl_player {
	/* Each op needs these: */
	const struct sl_program_op *next; /* of the task's */
	const struct sl_program_op *code; /* these; see sl_player_begin() */
	u64 *slots;			  /* rounds left, cursors: as many as the task's ops name */
	const void *program;		  /* checked; not changed while tasks are played */

	u32 task;			 /* index in it */
	u64 arrival_ns;			 /* when it really arrived; periods count from here */
	const struct sl_player_ops *ops; /* for sl_player_run() */
	void *host;			 /* the host's own */

	u64 released_ns; /* by the last period, since arrival */
	u32 nr_spawned;
	u32 nr_awaited;
};

/* Verbs of a step beside the program's: a loop itself is never handed out. */
#define SL_STEP_NONE	SL_VERB_LOOP	/* nothing is left to do; go on */
#define SL_STEP_FAULT	SL_VERB_END	/* b: why, one of these: */
#define SL_PLAYER_SPAWNED_OUT	(-1001)	/* spawned more children than it has */
#define SL_PLAYER_WAIT_FOR_NONE	(-1002)	/* waits for children never spawned */
#define SL_PLAYER_NO_VERB	(-1003)	/* the host has no such verb */

/*
 * Call once, when program and task are set, the rest zero. @slots: zero, and
 * sl_program_nr_slots() many.
 */
static inline void sl_player_begin(struct sl_player *p, u64 *slots)
{
	p->slots = slots;
	p->code = sl_program_ops(p->program) + sl_program_tasks(p->program)[p->task].op_first;
	p->next = p->code;
}

/* Number of the next op, from the task's first. */
static inline u32 sl_player_pc(const struct sl_player *p)
{
	return (u32)(p->next - p->code);
}

/*
 * The op that comes next; a round of a loop begins at the op behind LOOP, which itself
 * is met once. 0 rounds: endless.
 */
static inline const struct sl_program_op *sl_player_peek(struct sl_player *p)
{
	const struct sl_program_op *op = p->next;

	while (op->verb == SL_VERB_LOOP || op->verb == SL_VERB_END) {
		if (op->verb == SL_VERB_LOOP)
			p->slots[op->slot] = op->b;
		else if (!p->code[op->a].b || --p->slots[op->slot])
			op = &p->code[op->a];
		p->next = ++op;
	}
	return op;
}

/* The operand of RUN or SLEEP, which sl_player_peek() has just returned; go on behind it. */
static inline u64 sl_player_take_operand(struct sl_player *p, const struct sl_program_op *op)
{
	p->next = op + 1;
	/* Without a table it has been checked. */
	return op->flags & SL_OP_TABLE ? sl_program_operand(p->program, op, p->slots) : op->b;
}

struct sl_program_op sl_player_take_other(struct sl_player *p, const struct sl_program_op *op,
					  u64 now_ns);

/**
 * sl_player_take - the next op as a step to do, and go on behind it
 * @p: begun
 * @op: what sl_player_peek() has just returned
 * @now_ns: needed for SLEEP, PERIOD and TIMER only
 *
 * Return: the op with its operands resolved. b: drawn from its table; SLEEP, also for
 * PERIOD and TIMER: until when; SPAWN: a is the child's task; WAIT: b children, at
 * least one. SL_STEP_*: none of these. EXIT is never left.
 */
static inline struct sl_program_op sl_player_take(struct sl_player *p,
						  const struct sl_program_op *op, u64 now_ns)
{
	struct sl_program_op step = { .verb = op->verb };

	if (op->verb != SL_VERB_RUN && op->verb != SL_VERB_SLEEP)
		return sl_player_take_other(p, op, now_ns);
	step.b = sl_player_take_operand(p, op);
	if (op->verb == SL_VERB_SLEEP)
		step.b += now_ns;
	return step;
}

/**
 * sl_player_run - play a task to its end
 * @player: its first group but `code` is set, the rest is zero
 *
 * Context: the task itself, which may block in each verb.
 *
 * Return: 0 at EXIT; else what a function of the host returned, or
 * SL_PLAYER_*; @player's next op is then the one at fault.
 */
int sl_player_run(struct sl_player *player);

/**
 * sl_work - do a known amount of computing
 * @work: enum sl_work
 * @units: how much of it
 *
 * The same instructions on every host, integers only, so that a kernel can run
 * it too. How long a unit takes is the machine's: calibration measures it.
 *
 * Return: a number that depends on all that was computed, so that a compiler
 * cannot leave any of it out; and that a test can compare.
 */
u64 sl_work(u32 work, u64 units);

#endif
