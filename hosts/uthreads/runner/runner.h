/* SPDX-License-Identifier: MIT */
/*
 * runner.h - schedlab-uthreads: a workload program on user threads.
 *
 *	main.c -> play.c: arrivals, threads, the end -> verbs.c: what each verb is
 *	   \-> options.c         \-> events.c  \-> result.c: one JSON object
 *
 * Thread i of the program has pid i + 1, as on every host that chooses pids.
 *
 * Read next: play.c.
 */
#ifndef UT_RUNNER_H
#define UT_RUNNER_H

#include "ut.h"
#include "objects.h"
#include "options.h"
#include "player.h"

struct options {
	const char *policy_path;
	const char *program_path;
	const char *records_path; /* NULL: none are kept */
	const char *id;
	const char *events;		    /* NULL: none */
	const char *sets[SL_WORDS_MAX + 1]; /* NAME=VALUE of knobs; ends with NULL */
	u32 nr_cpus;
	u64 seed;
	u64 tick_ns;
	u64 limit_ns;	    /* of time; 0: none */
	u32 smt, llc, node; /* CPUs per core, cache, node; 0: see sched.h */
	bool has_detail;
	bool is_pinned;
};

/* How a run ended. */
struct result {
	const char *status;
	const char *error_kind; /* NULL: none */
	char error[1400];
	s32 task; /* pid, 0: none */
	u64 end_ns;
	u64 nr_switches;
	u32 nr_tasks;
	u32 nr_exited;	       /* atomic */
	u32 nr_products;       /* of `work`, checked */
	u64 taken_ns;	       /* by other processes, of all CPUs together */
	u64 clock_ns;	       /* CPU time of the kernel threads that are CPUs */
	u64 idle_clock_ns;     /* of that, while they had no task to run */
	u64 switch_clock_ns;   /* of that, between two tasks */
	u64 away_ns_max;       /* longest time that one of them had a CPU */
	u64 timer_late_ns_max; /* a timer's signal, after its time */
};

/* A task of the program. */
struct play {
	struct sl_player player;
	struct ut_thread *thread; /* NULL: not arrived yet */
	struct play *parent;
	ut_sem ended; /* children that have, not waited for */
	int failed;   /* what the player returned */
};

struct object {
	struct sl_object object;
	sl_lock_t *lock; /* protects it: its own, or run.lock */
	sl_lock_t own_lock;
};

struct run {
	const struct options *options;
	struct result *result;
	const void *program;
	struct play *plays;
	struct object *objects;
	struct cgroup **groups; /* by object; NULL where it is none */
	sl_lock_t lock;		/* all locks and conditions: AWAIT uses both */
	u32 *arrivals;		/* task numbers by arrival */
	u32 nr_arrivals;
	u32 next_arrival;
	int data_fd; /* what `read` and `write` work on */
};

extern struct run run;
extern const struct sl_player_ops ut_verbs;

/* options.c: Return: 0, or -1 with @why filled in. */
int parse_options(struct options *o, int argc, char **argv, char *why, u32 why_bytes);

/* play.c */
void play_run(const struct options *o, struct result *r);
int play_start(u32 task, struct play *parent);
void run_fail(const char *kind, s32 pid, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* events.c */
int events_prepare(const char *text);
u64 events_next_ns(void);
void events_until(u64 now_ns);

/* verbs.c */
int verbs_open(void);
void verbs_close(void);
void verbs_check_products(void);

/* result.c */
void print_result(const struct options *o, const struct result *r);
void print_clock(void);

#endif
