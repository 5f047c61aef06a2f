/* SPDX-License-Identifier: MIT */
/*
 * tasks.h - what a task of a workload does on Linux, under either player.
 *
 * Two programs play workloads, ../play on this machine and ../guest in a virtual
 * one; these verbs are the same in both, and have the signatures of struct
 * sl_player_ops. Where tasks share something it lies in a mapping that the program
 * made before them.
 *
 *	sync.c   locks, pipes, barriers, conditions
 *	attrs.c  what a policy is told about a task
 *	verbs.c  the rest: clocks, work, weights
 *
 * Read next: sync.c.
 */
#ifndef TASKS_TASKS_H
#define TASKS_TASKS_H

#include "player.h"

#define NS_PER_S 1000000000ULL

/* ---- sync.c: what tasks share is a futex in shared memory, or a pipe ---------- */

struct sync_object {
	u32 word;	 /* futex; lock: 0 free, 1 held, 2 wanted too */
			 /* barrier: round number */
			 /* condition: waiters let go so far */
	u32 count;	 /* barrier: parties that have come this round */
			 /* condition: waiters that have come so far */
	int pipe_fds[2]; /* pipe: read end, write end; else -1 */
};

/* Where an object of the program lies: each program defines it. */
struct sync_object *sync_object(struct sl_player *p, u32 object);

/* Sleep until *word differs from @seen or it is @until_ns; may wake early. */
void futex_wait(u32 *word, u32 seen, u64 until_ns);
void futex_wake(u32 *word, int how_many);
/* A lock that processes share; 0 is free. */
void futex_lock(u32 *word);
void futex_unlock(u32 *word);

/*
 * Make the pipes of a program, before any task. Return: 0, or -errno with
 * @fault_object the one that cannot be, and none made.
 */
int sync_open(const void *program, struct sync_object *objects, u32 *fault_object);
void sync_close(const void *program, struct sync_object *objects);

int sync_lock(struct sl_player *p, u32 object);
int sync_unlock(struct sl_player *p, u32 object);
int sync_send(struct sl_player *p, u32 object, u64 bytes);
int sync_recv(struct sl_player *p, u32 object, u64 bytes);
int sync_barrier(struct sl_player *p, u32 object);
int sync_await(struct sl_player *p, u32 object, u32 lock);
int sync_signal(struct sl_player *p, u32 object, bool all);

/* ---- attrs.c: a map of a policy, by pid; a descriptor of -1 is none -------------- */

/*
 * The map of that number. Return: a descriptor, or -errno: EPROTO where it holds
 * something else than struct task_attr, ENOTSUP where process numbers here are not
 * the machine's. Context: CAP_SYS_ADMIN.
 */
int attrs_open(u32 map_id);
/* All that the program says of a task, but its weight. Return: 0 or -errno. */
int attrs_write(int attrs_fd, s32 pid, const struct sl_program_task *task);
/*
 * One more, or another: @key is a TASK_ATTR_* that the map holds. The task is queued
 * anew, so that the policy reads it where it decides (S17). Return: the same.
 */
int attrs_change(int attrs_fd, s32 pid, u32 key, u64 value);

/* ---- verbs.c -------------------------------------------------------------------- */

u64 monotonic_ns(void);
/* CPU time of the calling task. */
u64 cpu_time_ns(void);
/* Return: 0. Context: a task; signals do not end it. */
int tasks_sleep(u64 until_monotonic_ns);
int tasks_work(struct sl_player *p, u32 kind, u64 units);
int tasks_yield(struct sl_player *p);
/* Linux's nice value whose weight is nearest; sched_ext's are those over 10.24. */
int nice_of_weight(u64 weight);

#endif
