/* SPDX-License-Identifier: MIT */
/*
 * inherit.c - priority inheritance: the owner of what an urgent thread waits for
 * is as urgent.
 *
 * What a policy sees is an attribute that changes (S36), after which the thread
 * is queued anew (S17): all policies with priorities understand that. One lock
 * serves all such mutexes; it is taken after the mutex's own.
 *
 * A mutex remembers the most urgent priority among its waiters (donated_); a
 * thread has the most urgent of its own and of those that the mutexes it holds
 * remember. A waiter for a mutex whose owner waits as well lends to the whole
 * chain.
 *
 * Read next: attr.c.
 */
#include "ut.h"

#define CHAIN_MAX 64	/* a longer chain of owners, or a ring, is not followed */

static sl_lock_t inherit_lock;

static bool is_more_urgent(const ut_mutex *m, s32 a, s32 b)
{
	return m->flags_ & UT_MUTEX_INHERIT_LARGEST ? a > b : a < b;
}

static bool has_priority(const struct ut_thread *t)
{
	return t->attr.given & UT_GIVES_PRIORITY;
}

static struct ut_thread *owner_of(const ut_mutex *m)
{
	uintptr_t owner = (uintptr_t)__atomic_load_n(&m->owner_, __ATOMIC_SEQ_CST);

	return (struct ut_thread *)(owner & ~1UL);
}

static void donate(ut_mutex *m, s32 priority)
{
	if (!m->has_donated_ || is_more_urgent(m, priority, m->donated_))
		m->donated_ = priority;
	m->has_donated_ = 1;
}

/* @waiter is about to wait for @m. Context: m's lock is held. */
void ut_inherit_from(ut_mutex *m, const struct ut_thread *waiter)
{
	s32 priority = waiter->priority;
	struct ut_thread *owner;

	if (!has_priority(waiter))
		return;
	sl_lock(&inherit_lock);
	for (u32 i = 0; m && m->flags_ && i < CHAIN_MAX; i++) {
		donate(m, priority);
		owner = owner_of(m);
		if (!owner || !has_priority(owner) || !is_more_urgent(m, priority, owner->priority))
			break;
		ut_attr_set_priority(owner, priority);
		m = smp_load_acquire(&owner->wait) == UT_WAIT_MUTEX ?
			    (ut_mutex *)(uintptr_t)READ_ONCE(owner->wait_object) :
			    NULL;
	}
	sl_unlock(&inherit_lock);
}

/* What @t has, of its own and from the mutexes it holds. Context: inherit_lock. */
static s32 priority_of(const struct ut_thread *t)
{
	s32 priority = t->attr.priority;

	for (const ut_mutex *m = t->held; m; m = m->next_held_) {
		if (m->has_donated_ && is_more_urgent(m, m->donated_, priority))
			priority = m->donated_;
	}
	return priority;
}

static void update(struct ut_thread *t)
{
	s32 priority = priority_of(t);

	if (has_priority(t) && priority != t->priority)
		ut_attr_set_priority(t, priority);
}

/*
 * @t is given @priority; for as long as a mutex lends it a more urgent one, it keeps
 * that. Context: @t's lock is held. Return: as sl_task_set_attr().
 */
int ut_inherit_give(struct ut_thread *t, s32 priority)
{
	s32 own = t->attr.priority;
	s32 in_effect = priority;
	int err;

	sl_lock(&inherit_lock);
	/* Which way is more urgent, the loan itself says. */
	if (has_priority(t) && (t->priority < own ? t->priority < priority :
						    t->priority > own && t->priority > priority))
		in_effect = t->priority;
	t->attr.priority = priority;
	t->priority = in_effect;
	err = sl_task_set_attr(&t->core, TASK_ATTR_PRIORITY, (u64)(s64)in_effect);
	sl_unlock(&inherit_lock);
	return err;
}

/* @owner has @m now, and others may wait for it already. */
void ut_inherit_begin(ut_mutex *m, struct ut_thread *owner)
{
	const struct ut_thread *t;

	sl_lock((sl_lock_t *)&m->lock_);
	sl_lock(&inherit_lock);
	m->has_donated_ = 0;
	for (t = m->waiters_.first; t; t = t->next) {
		if (has_priority(t))
			donate(m, t->priority);
	}
	update(owner);
	sl_unlock(&inherit_lock);
	sl_unlock((sl_lock_t *)&m->lock_);
}

/* @owner is about to let @m go, which is not among those it holds any more. */
void ut_inherit_end(ut_mutex *m, struct ut_thread *owner)
{
	sl_lock(&inherit_lock);
	m->has_donated_ = 0;
	update(owner);
	sl_unlock(&inherit_lock);
}
