/* SPDX-License-Identifier: MIT */
/*
 * play.h - schedlab-play: a workload program as processes or threads of Linux.
 *
 *	main.c -> run.c: tasks are made, start together, end -> task.c: one task
 *	           \-> result.c: a line per task             \-> verbs.c, files.c,
 *	                                                          usage.c, ../tasks
 *
 * It is started by schedlab-launch (../launch), under the scheduling class that
 * is to be measured; what it makes inherits class and CPUs. It changes nothing
 * but its own processes, so that nothing is left to be restored when it dies.
 *
 * A task that arrives at a time of its own exists before time 0 and sleeps until
 * then; one that is spawned is really forked by its parent, and really waited for.
 *
 * Read next: run.c.
 */
#ifndef PLAY_PLAY_H
#define PLAY_PLAY_H

#include "../tasks/tasks.h"

/* Tasks of a name that have another class than the rest. */
struct named_class {
	const char *task; /* not NUL-terminated: see name_bytes */
	u32 name_bytes;
	u32 policy; /* SCHED_* */
	u32 priority;
	s32 nice;
};

#define NAMED_CLASSES_MAX 8

struct options {
	const char *program_path;
	const char *result_path; /* gets a line of JSON per task, and one more */
	const char *folder;	 /* for the files of `read` and `write` */
	bool are_threads;
	bool has_weights;   /* nice values mean something in this class */
	u32 attributes_map; /* of the policy, see ../tasks/attrs.c; 0: none */
	struct named_class classes[NAMED_CLASSES_MAX];
	u32 nr_classes;
};

enum task_state {
	TASK_NEW,   /* not made yet */
	TASK_READY, /* it waits for time 0, or for its arrival */
	TASK_RUNNING,
	TASK_ENDED,
};

/* What a task was about when it failed. */
enum task_step {
	STEP_PLAY,
	STEP_CPUS,
	STEP_NICE,
	STEP_ATTRIBUTES,
	STEP_FILES,
};

/* What Linux counts of one task, or of several. */
struct usage {
	u64 user_us;
	u64 system_us;
	u64 nr_voluntary; /* context switches */
	u64 nr_involuntary;
	u64 run_ns;  /* /proc/.../schedstat; of one task only */
	u64 wait_ns; /* runnable, but not running */
};

/* Shared by all; each is written by its own task, then by the runner. */
struct task {
	u32 state; /* enum task_state; written last */
	s32 tid;
	u64 arrival_ns; /* since time 0, as all times here */
	u64 first_run_ns;
	u64 end_ns;
	struct usage before; /* when it arrived */
	struct usage used;   /* from then to its end, or to `read_ns` */
	u64 read_ns;	     /* a task that had not ended ran until it was read; 0: it had */
	s32 failed;	     /* what sl_player_run() returned */
	u32 step;	     /* enum task_step: what it was about then */
	u32 op;		     /* in STEP_PLAY: the op at fault */
	s32 signal;	     /* that killed it; 0: none did */
	u32 children_ended;  /* futex; threads only */
	bool is_told;	     /* its line has been written; the runner's */
};

struct shared {
	u64 start_ns;  /* CLOCK_MONOTONIC: time 0 of the program */
	u32 nr_ready;  /* futex: tasks that wait for time 0 */
	u32 may_go;    /* futex: 1 from just before time 0 on */
	u32 nr_armed;  /* futex: tasks that sleep until their arrival */
	u32 nr_alive;  /* futex: tasks that were made and have not ended */
	u32 lost_task; /* number of one that failed or was killed, 0: none */
	struct task *tasks;
	struct sync_object *objects;
};

/* The run, the same in every process of it. */
struct run {
	struct options options;
	const void *program;
	struct shared *shared;
	u32 nr_tasks;
	int attrs_fd;	   /* the policy's map; -1: none */
	u64 rounds_per_ms; /* of an empty loop, on an undisturbed CPU */
	struct usage used; /* by all tasks, their ends included */
	u64 end_ns;
	const char *error_kind; /* NULL: all went well */
	char error[400];
	s32 fault_task; /* number from 1; 0: none */
};

extern struct run run;

/* run.c: Return: exit code. */
int play(void);
/* The first failure is the one that counts; @task counts from 1, 0: none. */
void run_fail(const char *kind, s32 task, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* task.c */
/* Make a task that waits for time 0. Return: 0 or -errno. */
int task_make(u32 i);
/* Make a task now, as a child of the task that calls. Return: 0 or -errno. */
int task_spawn(u32 i);
/* Wait until @children of @parent's have ended. Return: 0 or -errno. */
int task_wait(u32 parent, u64 children, u64 nr_awaited);
/* What it is to have, in a class that heeds it; @of_class where it names none. */
int task_nice(u32 i, int of_class);
/* A process has ended, as wait4() says. Context: its parent. */
void task_reaped(s32 pid, int status);

/* usage.c */
struct usage usage_of_self(bool is_thread);
struct usage usage_of_children(void);
/* What can be read of another, while it lives. */
struct usage usage_of(s32 tid);
struct usage usage_since(struct usage now, struct usage before);

/* files.c */
/* Before any task is made: what all read. Return: 0 or -1 after run_fail(). */
int files_open(void);
/* In a new task: what it alone writes. Return: 0 or -errno. */
int files_open_own(u32 task);
int files_read(struct sl_player *p, u64 bytes, u32 chunk_bytes, u8 flags);
int files_write(struct sl_player *p, u64 bytes, u32 chunk_bytes, u8 flags);
/* "" where nothing is read or written. */
const char *files_system_name(void);

/* verbs.c; a player's host is an u64, the CPU time that its task has asked for. */
extern const struct sl_player_ops verbs;
/* Use the CPU until the task has had all of it. @before_ns: its CPU time at the start. */
void verbs_settle(struct sl_player *p, u64 before_ns);
/* Find out how long a round of `run` takes. */
void verbs_calibrate(void);

/* result.c: Return: 0 or -errno. */
int result_open(void);
/* Room for a line of each task. Context: the program is open. */
int result_reserve(void);
/* A line for each task that has ended since. */
int result_tell_tasks(bool is_last);
int result_tell_run(void);

#endif
