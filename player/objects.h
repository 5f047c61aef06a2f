/* SPDX-License-Identifier: MIT */
/*
 * objects.h - locks, pipes, conditions and barriers of a workload program, and
 * the tasks that wait for them; the same code in hosts/sim, hosts/kernel and
 * hosts/uthreads.
 *
 * A task that completes the operation of another task does so at once: an
 * unlock hands the lock over, data goes to the receiver that has waited
 * longest. So no task is woken spuriously, and waiters leave in the order in
 * which they came.
 *
 * The host allocates objects and waiters, serialises all calls on objects that
 * one operation may touch, and defines the functions sl_wait_*(). (hosts/linux
 * has Linux's own objects instead: futexes, pipes.)
 *
 * Read next: objects.c; hosts/sim/interpret.c, hosts/kernel/lab/sync.c,
 * hosts/uthreads/runner/verbs.c.
 */
#ifndef PLAYER_OBJECTS_H
#define PLAYER_OBJECTS_H

#include <scx/ops.h>

struct sl_object;
struct sl_waiters;

/* A task's side of an operation. The host sets task, the rest is zero at first. */
struct sl_waiter {
	void *task; /* the host's; tells lock holders apart */
	struct sl_waiter *next;
	struct sl_waiters *list; /* that it is in, or NULL */
	u64 need;		 /* bytes that are still to be moved */
	struct sl_object *lock;	 /* held again after AWAIT, or NULL */
};

struct sl_waiters {
	struct sl_waiter *first; /* has waited longest */
	struct sl_waiter *last;
};

/* One of any kind; zero, but for size. */
struct sl_object {
	u64 size;		   /* pipe: its bytes; barrier: its tasks */
	u64 level;		   /* pipe: bytes in it; barrier: arrived */
	void *owner;		   /* lock: the holder's task, or NULL */
	struct sl_waiters waiters; /* for lock, barrier, condition, data */
	struct sl_waiters senders; /* for room in the pipe */
};

enum sl_object_result {
	SL_OBJECT_DONE,	 /* the operation is complete */
	SL_OBJECT_WAITS, /* it will be, or is, by sl_wait_wake() */
	SL_OBJECT_ERROR, /* the lock is held already, or is not held */
};

/* ---- what the host defines ------------------------------------------------ */

/* Announce that the task of @w, the caller, will block on what @why names. */
void sl_wait_block(struct sl_waiter *w, const char *why);

/* @w now waits for what @why names, without having been woken. */
void sl_wait_change(struct sl_waiter *w, const char *why);

/*
 * The operation of @w is complete, because of @by: wake its task. @is_sync: the
 * caller is expected to block soon. It may be called before @w has left the CPU.
 */
void sl_wait_wake(struct sl_waiter *w, bool is_sync, const struct sl_waiter *by);

/* ---- waiters --------------------------------------------------------------- */

static inline void sl_waiters_add(struct sl_waiters *list, struct sl_waiter *w)
{
	w->next = NULL;
	w->list = list;
	if (list->first)
		list->last->next = w;
	else
		list->first = w;
	list->last = w;
}

/* Return: the waiter that has waited longest, now in no list; NULL: none. */
static inline struct sl_waiter *sl_waiters_take(struct sl_waiters *list)
{
	struct sl_waiter *w = list->first;

	if (!w)
		return NULL;
	list->first = w->next;
	w->list = NULL;
	return w;
}

/* The task gives up, wherever it is in a list, if it is in one. Linear time. */
void sl_waiter_drop(struct sl_waiter *w);

/* ---- operations, called for the task of @w --------------------------------- */

enum sl_object_result sl_object_lock(struct sl_object *o, struct sl_waiter *w);
enum sl_object_result sl_object_unlock(struct sl_object *o, const struct sl_waiter *w);
/* A stream of bytes, like Unix's: all of them, however small the pipe. */
enum sl_object_result sl_object_send(struct sl_object *o, struct sl_waiter *w, u64 bytes);
enum sl_object_result sl_object_recv(struct sl_object *o, struct sl_waiter *w, u64 bytes);
enum sl_object_result sl_object_arrive(struct sl_object *o, struct sl_waiter *w);
/* Release @lock (NULL: none) and wait; it is held again at the end. */
enum sl_object_result sl_object_await(struct sl_object *o, struct sl_waiter *w,
				      struct sl_object *lock);
/* Wake the task that has waited longest, or all; no task: no effect. */
void sl_object_signal(struct sl_object *o, const struct sl_waiter *w, bool all);

#endif
