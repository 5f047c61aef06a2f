/* SPDX-License-Identifier: MIT */
/*
 * sync.c - mutexes, condition variables, semaphores, barriers.
 *
 * No thread gets in before those that wait: what is released is handed to the
 * first in the queue before that thread runs. An uncontended mutex is one atomic
 * exchange, on one CPU not even that, and the core hears nothing of it.
 *
 *	owner_: 0  free | thread  owned | thread + 1  owned, with waiters
 *
 * Read next: inherit.c; channel.c.
 */
#include <errno.h>

#include "ut.h"

#define HAS_WAITERS 1UL
#define OWNER_DIED 0x100	/* in flags_, beside the program's */
#define INHERITS (UT_MUTEX_INHERIT_SMALLEST | UT_MUTEX_INHERIT_LARGEST)

/* The public types have the shape of the internal ones. */
_Static_assert(sizeof(struct ut_waiters_) == sizeof(struct ut_queue), "queue");
_Static_assert(sizeof(((ut_mutex *)0)->lock_) == sizeof(sl_lock_t), "lock");

static struct ut_queue *queue_of(struct ut_waiters_ *waiters)
{
	return (struct ut_queue *)waiters;
}

#define LOCK_OF(object) ((sl_lock_t *)&(object)->lock_)

/* ---- mutex ---------------------------------------------------------------- */

static uintptr_t *owner_word(ut_mutex *m)
{
	return (uintptr_t *)&m->owner_;
}

static bool change_owner(ut_mutex *m, uintptr_t from, uintptr_t to)
{
	uintptr_t *word = owner_word(m);

	if (ut_is_smp)
		return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST,
						   __ATOMIC_SEQ_CST);
	if (*word != from)
		return false;
	*word = to;
	return true;
}

static bool is_owner(ut_mutex *m, const struct ut_thread *t)
{
	return (__atomic_load_n(owner_word(m), __ATOMIC_RELAXED) & ~HAS_WAITERS) == (uintptr_t)t;
}

/* Another thread owns it, or owned it when that was looked at. */
static int lock_slowly(ut_mutex *m, struct ut_thread *self, u64 until_ns)
{
	uintptr_t owner;
	int err = ut_may_block();

	if (err)
		return err;
	sl_lock(LOCK_OF(m));
	for (;;) {
		owner = __atomic_load_n(owner_word(m), __ATOMIC_SEQ_CST);
		if (!owner && change_owner(m, 0, (uintptr_t)self)) {
			sl_unlock(LOCK_OF(m));
			return 0;
		}
		/* From now on the owner takes the lock above to unlock it. */
		if (owner && ((owner & HAS_WAITERS) || change_owner(m, owner, owner | HAS_WAITERS)))
			break;
	}
	if (m->flags_ & INHERITS)
		ut_inherit_from(m, self);
	return ut_wait_in(queue_of(&m->waiters_), LOCK_OF(m), UT_WAIT_MUTEX, m, until_ns);
}

/* Return: 0; -EOWNERDEAD: its last owner ended without letting it go. */
static int begin_owning(ut_mutex *m, struct ut_thread *self)
{
	bool has_died;

	m->next_held_ = self->held;
	self->held = m;
	if (!m->flags_)
		return 0;
	has_died = m->flags_ & OWNER_DIED;
	m->flags_ &= ~OWNER_DIED;
	if (m->flags_ & INHERITS)
		ut_inherit_begin(m, self);
	return has_died ? -EOWNERDEAD : 0;
}

static void end_owning(ut_mutex *m, struct ut_thread *self)
{
	ut_mutex **link = &self->held;

	while (*link != m)
		link = (ut_mutex **)&(*link)->next_held_;
	*link = m->next_held_;
	if (m->flags_ & INHERITS)
		ut_inherit_end(m, self);
}

/* Context: preemption disabled. */
static int lock_mutex(ut_mutex *m, bool may_give_up)
{
	struct ut_thread *self = ut_this_cpu()->curr;
	u64 until_ns = may_give_up ? self->deadline_ns : UT_NEVER;
	int err = 0;

	if (!change_owner(m, 0, (uintptr_t)self))
		err = is_owner(m, self) ? -EDEADLK : lock_slowly(m, self, until_ns);
	return err ? err : begin_owning(m, self);
}

int ut_mutex_lock(ut_mutex *m)
{
	return ut_inside(lock_mutex(m, true));
}

static int trylock_mutex(ut_mutex *m)
{
	struct ut_thread *self = ut_this_cpu()->curr;

	return change_owner(m, 0, (uintptr_t)self) ? begin_owning(m, self) : -EBUSY;
}

int ut_mutex_trylock(ut_mutex *m)
{
	return ut_inside(trylock_mutex(m));
}

/* Context: preemption disabled, no lock held. */
static int unlock_mutex(ut_mutex *m)
{
	struct ut_thread *self = ut_this_cpu()->curr;
	struct ut_queue *q = queue_of(&m->waiters_);
	struct ut_thread *next;

	if (!is_owner(m, self))
		return -EPERM;
	end_owning(m, self);
	if (change_owner(m, (uintptr_t)self, 0))
		return 0;
	sl_lock(LOCK_OF(m));
	next = ut_queue_take(q);
	__atomic_store_n(owner_word(m), (uintptr_t)next | (q->first ? HAS_WAITERS : 0),
			 __ATOMIC_SEQ_CST);
	sl_unlock(LOCK_OF(m));
	if (next)
		ut_wake_taken(next);
	return 0;
}

int ut_mutex_unlock(ut_mutex *m)
{
	return ut_inside(unlock_mutex(m));
}

/* @t, the caller, ends: what it has not let go is let go for it. */
void ut_mutexes_end(struct ut_thread *t)
{
	char line[160];

	while (t->held) {
		ut_mutex *m = t->held;

		sl_print_to(line, sizeof(line), "thread %s[%d] ended and still held mutex %p",
			    t->core.p.comm, t->core.p.pid, (void *)m);
		sl_host_print(line);
		m->flags_ |= OWNER_DIED;
		unlock_mutex(m);
	}
}

/* ---- condition -------------------------------------------------------------- */

/* Letting go of the mutex and waiting are one step: see the order of locks. */
static int wait_cond(ut_cond *c, ut_mutex *m, u64 until_ns)
{
	struct ut_thread *self = ut_this_cpu()->curr;
	int err, again;

	if (!is_owner(m, self))
		return -EPERM;
	err = ut_may_block();
	if (err)
		return err;
	sl_lock(LOCK_OF(c));
	/* A signal by the mutex's next owner waits for this lock. */
	unlock_mutex(m);
	err = ut_wait_in(queue_of(&c->waiters_), LOCK_OF(c), UT_WAIT_COND, c,
			 ut_until(self, until_ns));
	again = lock_mutex(m, false);
	return again ? again : err;
}

int ut_cond_wait_until(ut_cond *c, ut_mutex *m, uint64_t until_ns)
{
	return ut_inside(wait_cond(c, m, until_ns));
}

int ut_cond_wait(ut_cond *c, ut_mutex *m)
{
	return ut_cond_wait_until(c, m, UT_NEVER);
}

static int signal_cond(ut_cond *c)
{
	struct ut_thread *t;

	sl_lock(LOCK_OF(c));
	t = ut_queue_take(queue_of(&c->waiters_));
	sl_unlock(LOCK_OF(c));
	if (t)
		ut_wake_taken(t);
	return 0;
}

int ut_cond_signal(ut_cond *c)
{
	return ut_inside(signal_cond(c));
}

/* All that wait now, in order; one that comes back meanwhile waits for the lock. */
static int broadcast_cond(ut_cond *c)
{
	sl_lock(LOCK_OF(c));
	ut_wake_all(queue_of(&c->waiters_));
	sl_unlock(LOCK_OF(c));
	return 0;
}

int ut_cond_broadcast(ut_cond *c)
{
	return ut_inside(broadcast_cond(c));
}

/* ---- semaphore -------------------------------------------------------------- */

static int wait_sem(ut_sem *s, bool may_wait, u64 until_ns)
{
	int err = 0;

	sl_lock(LOCK_OF(s));
	if (s->count_)
		s->count_--;
	else if (may_wait)
		return ut_wait_in(queue_of(&s->waiters_), LOCK_OF(s), UT_WAIT_SEM, s,
				  ut_until(ut_this_cpu()->curr, until_ns));
	else
		err = -EAGAIN;
	sl_unlock(LOCK_OF(s));
	return err;
}

int ut_sem_wait_until(ut_sem *s, uint64_t until_ns)
{
	return ut_inside(wait_sem(s, true, until_ns));
}

int ut_sem_wait(ut_sem *s)
{
	return ut_sem_wait_until(s, UT_NEVER);
}

int ut_sem_trywait(ut_sem *s)
{
	return ut_inside(wait_sem(s, false, 0));
}

static int post_sem(ut_sem *s)
{
	struct ut_thread *t;
	int err = 0;

	sl_lock(LOCK_OF(s));
	t = ut_queue_take(queue_of(&s->waiters_));
	if (!t && s->count_ == ~0U)
		err = -EOVERFLOW;
	else if (!t)
		s->count_++;
	sl_unlock(LOCK_OF(s));
	if (t)
		ut_wake_taken(t);
	return err;
}

int ut_sem_post(ut_sem *s)
{
	return ut_inside(post_sem(s));
}

/* ---- barrier ---------------------------------------------------------------- */

/*
 * The last to come lets the others go on, in order, and goes on itself. Under the
 * lock, or one of them could come back, and be let go in place of another.
 */
static int pass(ut_barrier *b)
{
	b->nr_here_ = 0;
	ut_wake_all(queue_of(&b->waiters_));
	sl_unlock(LOCK_OF(b));
	return 1;
}

static int wait_barrier(ut_barrier *b)
{
	int err;

	if (!b->nr_parties_)
		return -EINVAL;
	sl_lock(LOCK_OF(b));
	if (++b->nr_here_ == b->nr_parties_)
		return pass(b);
	err = ut_may_block();
	if (err) {
		b->nr_here_--;
		sl_unlock(LOCK_OF(b));
		return err;
	}
	return ut_wait_in(queue_of(&b->waiters_), LOCK_OF(b), UT_WAIT_BARRIER, b,
			  ut_this_cpu()->curr->deadline_ns);
}

int ut_barrier_wait(ut_barrier *b)
{
	return ut_inside(wait_barrier(b));
}
