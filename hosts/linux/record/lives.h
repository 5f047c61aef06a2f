/* SPDX-License-Identifier: MIT */
/*
 * lives.h - what lives.c and states.c share: tasks, CPUs, and what has been counted.
 */
#ifndef SCHEDLAB_LIVES_H
#define SCHEDLAB_LIVES_H

#include <schedlab/record.h>

#include "record.h"

enum state { NEW, RUNNABLE, RUNNING, BLOCKED, DEAD };

struct life {
	u32 pid;    /* in the kernel */
	u32 number; /* in the records; 0: has not arrived */
	u32 parent; /* its number; 0: none of the run's */
	u32 root;   /* which tree of those followed, from 1; 0: none */
	s32 depth;
	u32 process; /* index of that of its first thread */
	u16 cpu;     /* where it runs, or ran last */
	u8 state;    /* enum state */
	u8 priority; /* the kernel's: 100 + 20 + nice, or real-time */
	bool is_meant;
	bool is_exiting;
	u64 nr_calls;	/* system calls, of any kind; 0: not counted */
	u8 call;	/* SL_CALL_*: it is in that system call; 0 */
	u64 since_ns;	/* it is in this state */
	u64 started_ns; /* it has run unseen since then; 0: it has not */
	u64 yielded_ns;
	u64 woken_ns; /* while it runs; 0: it has not been */
	u32 woken_by; /* number of the task that did it; 0: none of the run's */
	u16 woken_by_cpu;
	bool left_unseen; /* it stopped, and no switch has said so */
	bool is_unwoken;  /* it runs, and nothing has said that it was woken */
	char name[NAME_BYTES];
};

/* What is on a CPU: a task of the run, or an outsider, or the idle task. */
struct processor {
	u32 life;	  /* index; 0: none of the run's */
	u32 outsider;	  /* pid; 0: none */
	u64 since_ns;	  /* the outsider, and those before it, have been */
	u64 switched_ns;  /* last switch */
	u64 accounted_ns; /* its task ran until then at least; 0: no account */
	u32 thread;	  /* pid that is forked next, as a thread; 0 */
	bool is_known;	  /* a switch has been seen */
};

struct converter {
	const struct events_header *header;
	u64 origin_ns; /* UNKNOWN: when the first tree begins */
	u64 end_ns;
	bool has_begun;
	struct life *lives; /* [0] is no task; they never move */
	u32 nr_lives;
	u32 *life_of; /* by pid */
	struct processor *cpus;
	u32 nr_tasks;
	u32 nr_roots;
	u64 nr_lost;
	u64 nr_repairs;
	u64 nr_wakeups;	 /* of sleepers */
	u64 nr_unwoken;	 /* sleepers that ran without one */
	u64 nr_inferred; /* starts that no switch told of */
	u32 costs[NR_COSTS];
	u32 slice_ns; /* of the fair class; 0: not told */
	u64 now_ns;   /* since the origin */
};

extern struct converter c;

/* It may run from @t_ns on; @by is the number of the task that woke it, or 0. */
void task_wakes(struct life *l, u64 t_ns, u16 cpu, u32 by);
void task_runs(struct life *l, u64 t_ns, u16 cpu);
void task_stops(struct life *l, u8 why);
u8 why_it_stops(const struct life *l, int32_t state);
/* What no switch has told of. */
void task_ran_unseen(struct life *l, u16 cpu, u64 t_ns);
void task_left_unseen(struct life *l, u8 why, u64 until_ns);
/* Events contradict each other here, and records are added. */
void count_repair(void);

#endif
