/* SPDX-License-Identifier: MIT */
/*
 * guest.h - the one program of the guest: init, policy loader and task runner.
 *
 * The guest is a distribution kernel in QEMU with this program as its whole
 * user space. It reads /job, does what each line says, and answers in frames.
 *
 *	init.c    mounts, reads the job            -> load.c, play.c
 *	load.c    loads a policy with libbpf, sets its knobs, attaches it
 *	play.c    real processes play a workload program under the policy
 *	verbs.c   what each verb is on Linux
 *	trace.c   records what the scheduler did, through tracefs
 *	frame.c   the answers
 *
 * Read next: init.c.
 */
#ifndef GUEST_H
#define GUEST_H

#include <stdarg.h>

#include "player.h"

/* ---- frame.c: answers to the machine outside --------------------------- */

/*
 * A frame is "NAME BYTES\n", that many bytes, and "\n". python/schedlab/hosts/
 * guest.py lists the names and what follows each.
 */
void frame_init(void);
void frame_bytes(const char *name, const void *data, u64 bytes);
void frame_text(const char *name, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Sends what the file holds; nothing where it cannot be read. */
void frame_file(const char *name, const char *path);

/* ---- load.c: one policy ------------------------------------------------ */

struct policy;

/*
 * Open the object file of a policy; a frame says so if it cannot be.
 * Return: NULL then.
 */
struct policy *policy_open(const char *path);
/* Set a knob, by the name of its global. Return: 0, or -1 after a frame. */
int policy_set(struct policy *policy, const char *knob, u64 value);
/* Have the verifier look at it and load it. Return: 0, or -1 after a frame. */
int policy_load(struct policy *policy);
/* Hand it the CPUs. Return: 0, or -1 after a frame. */
int policy_attach(struct policy *policy);
/* Has the kernel not thrown it out? */
bool policy_is_attached(const struct policy *policy);
/* The map of that name as a file descriptor and its value size, or -1. */
int policy_map(struct policy *policy, const char *name, u32 *value_bytes);
/* Detach, report what the kernel said meanwhile, and free everything. */
void policy_close(struct policy *policy);

/* ---- trace.c: what the scheduler did ----------------------------------- */

void trace_init(void);
void trace_start(void);
void trace_stop(void);
/* Sends the events, and how many were lost. */
void trace_send(void);

/* ---- play.c, verbs.c: a workload program ------------------------------- */

/* State that all processes of a run share; one mapping, made before any. */
struct shared_task {
	s32 pid;
	u32 may_arm;		/* futex: 1 when it may set its arrival timer */
	u32 started;		/* futex: 1 when its parent has spawned it */
	u32 children_ended;	/* futex: counts up */
	s32 result;		/* what sl_player_run() returned */
};

struct shared_object {
	u32 word;		/* futex; lock: 0 free, 1 held, 2 wanted too */
				/* barrier: round number */
				/* condition: waiters let go so far */
	u32 count;		/* barrier: parties that have come this round */
				/* condition: waiters that have come so far */
	int pipe_fds[2];	/* pipe: read end, write end */
};

struct shared {
	u64 start_ns;		/* CLOCK_MONOTONIC: time 0 of the program */
	u32 nr_armed;		/* futex: tasks whose timer is set */
	u32 nr_left;		/* futex: tasks that have not ended */
	int attrs_fd;		/* map of attributes, -1: the policy has none */
	struct shared_task *tasks;
	struct shared_object *objects;
};

u64 monotonic_ns(void);
/* Sleep until *word differs from @seen or it is @until_ns; may wake early. */
void futex_wait(u32 *word, u32 seen, u64 until_ns);
void futex_wake(u32 *word, int how_many);

int verbs_open(const void *program, struct shared *shared);
void verbs_close(const void *program, struct shared *shared);
extern const struct sl_player_ops verbs;

/* Attributes of a task for the policy; the file format of scx/task_attr.h. */
int attrs_write(int attrs_fd, s32 pid, const struct sl_program_task *task);
int attrs_change(int attrs_fd, s32 pid, u32 key, u64 value);

void play(struct policy *policy, const char *path);

#endif
