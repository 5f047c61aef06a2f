/* SPDX-License-Identifier: MIT */
/*
 * rwlock.c - many readers or one writer, in order of arrival.
 *
 * A reader that comes after a writer that waits waits as well, so neither kind keeps
 * the other out. An owner that unlocks it, and a waiter
 * that gives up, let in those that may own it now.
 *
 * Read next: wait.c.
 */
#include <errno.h>

#include "ut.h"

#define LOCK_OF(l) ((sl_lock_t *)&(l)->lock_)

static struct ut_queue *queue_of(ut_rwlock *l)
{
	return (struct ut_queue *)&l->waiters_;
}

static bool has_room(const ut_rwlock *l, bool is_write)
{
	return is_write ? !l->nr_owners_ : l->nr_owners_ >= 0;
}

static void add_owner(ut_rwlock *l, bool is_write)
{
	l->nr_owners_ += is_write ? -1 : 1;
}

/* The first that wait own it, as many as may together. Context: lock held. */
static void let_in(ut_rwlock *l)
{
	struct ut_thread *t;

	while ((t = queue_of(l)->first)) {
		bool is_write = READ_ONCE(t->wait) == UT_WAIT_WRITE;

		if (!has_room(l, is_write))
			break;
		add_owner(l, is_write);
		ut_wake_taken(ut_queue_take(queue_of(l)));
	}
}

/* Context: preemption disabled. */
static int lock(ut_rwlock *l, bool is_write, bool may_wait)
{
	int err = 0;

	sl_lock(LOCK_OF(l));
	if (!queue_of(l)->first && has_room(l, is_write)) {
		add_owner(l, is_write);
	} else if (!may_wait) {
		err = -EBUSY;
	} else {
		err = ut_wait_in(queue_of(l), LOCK_OF(l), is_write ? UT_WAIT_WRITE : UT_WAIT_READ,
				 l, ut_this_cpu()->curr->deadline_ns);
		if (!err)
			return 0;
		/* Readers may have waited behind a writer that gave up. */
		sl_lock(LOCK_OF(l));
		let_in(l);
	}
	sl_unlock(LOCK_OF(l));
	return err;
}

int ut_rwlock_rdlock(ut_rwlock *l)
{
	return ut_inside(lock(l, false, true));
}

int ut_rwlock_wrlock(ut_rwlock *l)
{
	return ut_inside(lock(l, true, true));
}

int ut_rwlock_tryrdlock(ut_rwlock *l)
{
	return ut_inside(lock(l, false, false));
}

int ut_rwlock_trywrlock(ut_rwlock *l)
{
	return ut_inside(lock(l, true, false));
}

static int unlock(ut_rwlock *l)
{
	int err = 0;

	sl_lock(LOCK_OF(l));
	if (l->nr_owners_ > 0)
		l->nr_owners_--;
	else if (l->nr_owners_)
		l->nr_owners_ = 0;
	else
		err = -EPERM;
	let_in(l);
	sl_unlock(LOCK_OF(l));
	return err;
}

int ut_rwlock_unlock(ut_rwlock *l)
{
	return ut_inside(unlock(l));
}
