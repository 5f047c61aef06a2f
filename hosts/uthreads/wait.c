/* SPDX-License-Identifier: MIT */
/*
 * wait.c - a thread waits in a queue until a waker takes it out.
 *
 * The one way in which mutexes, conditions, semaphores, barriers and channels
 * block. A thread that is taken out has what it waited for: a waker hands over
 * under the object's lock, so the thread need not look again. It may also take
 * itself out, when its time is over or it is asked to end.
 *
 * Read next: sync.c.
 */
#include <errno.h>

#include "ut.h"

/* In no queue any more, but its waker is not done with it. */
static struct ut_queue taken;

static void unlink_waiter(struct ut_queue *q, struct ut_thread *t)
{
	SL_ASSERT(t->queue == q);
	if (t->prev)
		t->prev->next = t->next;
	else
		q->first = t->next;
	if (t->next)
		t->next->prev = t->prev;
	else
		q->last = t->prev;
}

/*
 * The first waiter, taken out; or NULL. Whatever it is given comes before
 * ut_wake_taken(). Context: the object's lock is held.
 */
struct ut_thread *ut_queue_take(struct ut_queue *q)
{
	struct ut_thread *t = q->first;

	if (t) {
		unlink_waiter(q, t);
		WRITE_ONCE(t->queue, &taken);
	}
	return t;
}

/* Context: the object's lock may be held. */
void ut_wake_taken(struct ut_thread *t)
{
	smp_store_release(&t->queue, NULL);
	ut_wake(t, 0);
}

/* All waiters, in order. Context: the object's lock is held. */
void ut_wake_all(struct ut_queue *q)
{
	struct ut_thread *t;

	while ((t = ut_queue_take(q)))
		ut_wake_taken(t);
}

static void append(struct ut_queue *q, struct ut_thread *t)
{
	t->next = NULL;
	t->prev = q->last;
	if (q->last)
		q->last->next = t;
	else
		q->first = t;
	q->last = t;
	WRITE_ONCE(t->queue, q);
}

/* Callers of these could not do without what they wait for. */
static bool is_cancellation_point(enum ut_wait wait)
{
	return wait < UT_WAIT_MUTEX || wait > UT_WAIT_WRITE;
}

/* Why it need not wait any longer although no waker has taken it out; 0: no reason. */
int ut_why_leave(const struct ut_thread *t, enum ut_wait wait, u64 until_ns)
{
	if (is_cancellation_point(wait) && smp_load_acquire(&t->is_cancelled))
		return -ECANCELED;
	if (until_ns != UT_NEVER && smp_load_acquire(&t->heap_idx) == UT_NOT_IN_HEAP)
		return -ETIMEDOUT;
	return 0;
}

void ut_end_timed_wait(struct ut_thread *self, u64 until_ns)
{
	ut_end_wait(self);
	if (until_ns != UT_NEVER)
		ut_sleeper_remove(self);
}

/* Context: the object's lock is held, and dropped here. */
static __noinline int wait_until_taken(struct ut_thread *self, struct ut_queue *q, sl_lock_t *lock,
				       enum ut_wait wait, const void *object, u64 until_ns)
{
	int err;

	for (;;) {
		ut_prepare_block(self, wait, object);
		err = ut_why_leave(self, wait, until_ns);
		if (err && READ_ONCE(self->queue) == q)
			break;
		sl_unlock(lock);
		if (!err && smp_load_acquire(&self->queue))
			ut_block(self);
		if (!smp_load_acquire(&self->queue))
			return 0;
		sl_lock(lock);
	}
	unlink_waiter(q, self);
	WRITE_ONCE(self->queue, NULL);
	/*
	 * In the same step: a thread that comes now must not count on the one that
	 * leaves.
	 */
	if (wait == UT_WAIT_BARRIER)
		((ut_barrier *)(uintptr_t)object)->nr_here_--;
	sl_unlock(lock);
	ut_forced_pause();
	return err;
}

/**
 * ut_wait_in - wait in a queue until taken out
 * @q: queue of @object
 * @lock: lock of @object; held, and dropped here
 * @wait: what kind of object it is
 * @until_ns: UT_NEVER: as long as it takes
 *
 * Context: preemption disabled, by this call alone.
 * Return: 0; -ETIMEDOUT; -ECANCELED; -EPERM: the thread has disabled preemption;
 * -ENOMEM.
 */
int ut_wait_in(struct ut_queue *q, sl_lock_t *lock, enum ut_wait wait, const void *object,
	       u64 until_ns)
{
	struct ut_thread *self = ut_this_cpu()->curr;
	int err = ut_begin_wait(self, until_ns);
	bool is_taken;

	if (err) {
		sl_unlock(lock);
		return err;
	}
	append(q, self);
	ut_prepare_block(self, wait, object);
	is_taken = false;
	if (likely(!ut_why_leave(self, wait, until_ns))) {
		sl_unlock(lock);
		if (smp_load_acquire(&self->queue))
			ut_block(self);
		/* The usual way: nothing has to be locked again. */
		is_taken = !smp_load_acquire(&self->queue);
		if (unlikely(!is_taken))
			sl_lock(lock);
	}
	if (unlikely(!is_taken))
		err = wait_until_taken(self, q, lock, wait, object, until_ns);
	ut_end_timed_wait(self, until_ns);
	return err;
}
