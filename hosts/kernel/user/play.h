/* SPDX-License-Identifier: MIT */
/*
 * play.h - between play.c, which sets a workload up, and playverbs.c, which does
 * what its tasks say.
 *
 * Read next: play.c.
 */
#ifndef USER_PLAY_H
#define USER_PLAY_H

#include "player.h"

/* The sync objects: those of the program, then this program's own. */
struct play {
	const void *program;
	int first_pid; /* of task 0; task i has this + i */
	int syncs;     /* descriptor of the set */
	u32 all_ended; /* counter: tasks that have ended */
	u32 device;
	u32 children_ended; /* counter of task i: this + i */
	u64 spin_ns_max;    /* between two looks at one's CPU time */
	u64 call_ns;	    /* CPU time of a read or write */
	u64 ps_per_round;   /* of spin_rounds() */
	u64 ps_per_stretch; /* of spin_stretches() */
	u64 run_until_ns;   /* CPU time up to which the task's runs went */
};

extern const struct sl_player_ops play_verbs;

/* Find out how long a round takes here. */
void play_calibrate(struct play *play);

/* One line to the host's side, or to the console where there is none. */
#define PLAY_LINE_BYTES 256
#define play_say(...)							\
	do {								\
		char say_line_[PLAY_LINE_BYTES];			\
									\
		play_send(say_line_, snprintf(say_line_, PLAY_LINE_BYTES, \
					      __VA_ARGS__));		\
	} while (0)
void play_send(const char *line, int bytes);

#endif
