/* SPDX-License-Identifier: MIT */
/*
 * objects.c - what locks, pipes, conditions and barriers do, on hosts whose
 * tasks are not Linux's.
 *
 * Called by hosts/sim/interpret.c, hosts/kernel/lab/sync.c and
 * hosts/uthreads/runner/verbs.c. Which task is woken, by which, and in which order
 * is decided here only.
 *
 * Invariant: a waiter is in at most one list, and in none once it is woken.
 *
 * Read next: tests/player/test_objects.py.
 */
#include "objects.h"

void sl_waiter_drop(struct sl_waiter *w)
{
	struct sl_waiter *before = NULL;

	if (!w->list)
		return;
	for (struct sl_waiter *at = w->list->first; at != w; at = at->next)
		before = at;
	if (before)
		before->next = w->next;
	else
		w->list->first = w->next;
	if (w->list->last == w)
		w->list->last = before;
	w->list = NULL;
}

static enum sl_object_result wait_in(struct sl_waiters *list, struct sl_waiter *w, const char *why)
{
	sl_wait_block(w, why);
	sl_waiters_add(list, w);
	return SL_OBJECT_WAITS;
}

/* ---- locks and conditions -------------------------------------------------- */

enum sl_object_result sl_object_lock(struct sl_object *o, struct sl_waiter *w)
{
	if (o->owner == w->task)
		return SL_OBJECT_ERROR;
	if (o->owner)
		return wait_in(&o->waiters, w, "lock");
	o->owner = w->task;
	return SL_OBJECT_DONE;
}

enum sl_object_result sl_object_unlock(struct sl_object *o, const struct sl_waiter *w)
{
	struct sl_waiter *next;

	if (o->owner != w->task)
		return SL_OBJECT_ERROR;
	next = sl_waiters_take(&o->waiters);
	o->owner = next ? next->task : NULL;
	if (next)
		sl_wait_wake(next, false, w);
	return SL_OBJECT_DONE;
}

enum sl_object_result sl_object_await(struct sl_object *o, struct sl_waiter *w,
				      struct sl_object *lock)
{
	if (lock && sl_object_unlock(lock, w) == SL_OBJECT_ERROR)
		return SL_OBJECT_ERROR;
	w->lock = lock;
	return wait_in(&o->waiters, w, "condition");
}

/* @w has been signalled by @by: wake it with its lock, or queue it for that. */
static void leave_condition(struct sl_waiter *w, const struct sl_waiter *by)
{
	struct sl_object *lock = w->lock;

	if (lock && lock->owner) {
		sl_wait_change(w, "lock");
		sl_waiters_add(&lock->waiters, w);
		return;
	}
	if (lock)
		lock->owner = w->task;
	sl_wait_wake(w, false, by);
}

void sl_object_signal(struct sl_object *o, const struct sl_waiter *by, bool all)
{
	struct sl_waiter *w;

	while ((w = sl_waiters_take(&o->waiters))) {
		leave_condition(w, by);
		if (!all)
			return;
	}
}

/* ---- pipes ----------------------------------------------------------------- */

/* Move what can be moved for @w. Return: true if its operation is complete. */
static bool move_bytes(struct sl_object *o, struct sl_waiter *w, bool is_send)
{
	u64 can = is_send ? o->size - o->level : o->level;
	u64 bytes = w->need < can ? w->need : can;

	w->need -= bytes;
	o->level = is_send ? o->level + bytes : o->level - bytes;
	return !w->need;
}

/* Let the first waiter move what it can. Return: whether a byte has moved. */
static bool advance(struct sl_object *o, const struct sl_waiter *by, bool is_send)
{
	struct sl_waiters *list = is_send ? &o->senders : &o->waiters;
	struct sl_waiter *w = list->first;
	u64 needed;
	bool is_done;

	if (!w)
		return false;
	needed = w->need;
	is_done = move_bytes(o, w, is_send);
	if (!is_done)
		return w->need != needed;
	/* Once woken, @w may be gone. */
	sl_wait_wake(sl_waiters_take(list), true, by);
	return needed > 0;
}

/*
 * After a change of a pipe: complete what has become possible, in order. A
 * message larger than the pipe goes through it in several steps.
 */
static void settle_pipe(struct sl_object *o, const struct sl_waiter *by)
{
	bool has_changed;

	do {
		has_changed = advance(o, by, false);
		has_changed |= advance(o, by, true);
	} while (has_changed);
}

static enum sl_object_result use_pipe(struct sl_object *o, struct sl_waiter *w, u64 bytes,
				      bool is_send)
{
	struct sl_waiters *list = is_send ? &o->senders : &o->waiters;
	enum sl_object_result result = SL_OBJECT_DONE;

	w->need = bytes;
	/* Settling may complete it at once: then it will not block. */
	if (list->first || !move_bytes(o, w, is_send))
		result = wait_in(list, w, is_send ? "room in pipe" : "data in pipe");
	settle_pipe(o, w);
	return result;
}

enum sl_object_result sl_object_send(struct sl_object *o, struct sl_waiter *w, u64 bytes)
{
	return use_pipe(o, w, bytes, true);
}

enum sl_object_result sl_object_recv(struct sl_object *o, struct sl_waiter *w, u64 bytes)
{
	return use_pipe(o, w, bytes, false);
}

/* ---- barriers -------------------------------------------------------------- */

enum sl_object_result sl_object_arrive(struct sl_object *o, struct sl_waiter *w)
{
	struct sl_waiter *other;

	if (++o->level < o->size)
		return wait_in(&o->waiters, w, "barrier");
	o->level = 0;
	while ((other = sl_waiters_take(&o->waiters)))
		sl_wait_wake(other, false, w);
	return SL_OBJECT_DONE;
}
