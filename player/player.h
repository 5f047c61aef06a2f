/* SPDX-License-Identifier: MIT */
/*
 * player.h - runs one task of a workload program, on hosts that run real code.
 *
 * The player knows the program: loops, tables, children, periods. What a verb
 * does is the host's, given as a table of functions, so that a Linux process, a
 * user-level thread and a process of the teaching kernel play the same bytes in
 * the same way. (hosts/sim does not use it: there, a verb takes no real time,
 * and its interpreter has to stop and go on between two events.)
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
 * on a host that has no conditions; a task that needs one ends there.
 */
struct sl_player_ops {
	u64 (*now_ns)(struct sl_player *player);
	/* Use the CPU until the task has had @ns more of it. */
	int (*run)(struct sl_player *player, u64 ns);
	int (*work)(struct sl_player *player, u32 work, u64 units);
	/* Sleep until now_ns() is @at_ns or later. */
	int (*sleep_until)(struct sl_player *player, u64 at_ns);
	/* @bytes in calls of @chunk_bytes; @flags: SL_OP_SYNC, SL_OP_DIRECT. */
	int (*read)(struct sl_player *player, u64 bytes, u32 chunk_bytes,
		    u8 flags);
	int (*write)(struct sl_player *player, u64 bytes, u32 chunk_bytes,
		     u8 flags);
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
	/* Start task @task of the program. */
	int (*spawn)(struct sl_player *player, u32 task);
	/* Wait until @children more of the task's own children have ended. */
	int (*wait)(struct sl_player *player, u64 children);
	int (*set)(struct sl_player *player, u32 key, u64 value);
};

/* A task being played. The host sets the first group and may read the rest. */
struct sl_player {
	const void *program;	/* checked; not changed while tasks are played */
	u32 task;		/* index in it */
	const struct sl_player_ops *ops;
	void *host;		/* the host's own */
	u64 arrival_ns;		/* when it really arrived; periods count from here */

	u64 slots[SL_PROGRAM_SLOTS_MAX];	/* rounds left; cursors */
	u64 released_ns;	/* by the last period, since arrival */
	u32 pc;			/* op being played, from the task's first */
	u64 nr_spawned;
	u64 nr_awaited;
};

/* Why sl_player_run() ended early, beside what the host's functions return. */
#define SL_PLAYER_SPAWNED_OUT	(-1001)	/* spawned more children than it has */
#define SL_PLAYER_WAIT_FOR_NONE	(-1002)	/* waits for children never spawned */
#define SL_PLAYER_NO_VERB	(-1003)	/* the host has no such verb */

/**
 * sl_player_run - play a task to its end
 * @player: its first group is set, the rest is zero
 *
 * Context: the task itself, which may block in each verb.
 *
 * Return: 0 at EXIT; else what a function of the host returned, or
 * SL_PLAYER_*; @player->pc is then the op at fault.
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
