/* SPDX-License-Identifier: MIT */
/*
 * locks.c - a thread that holds a lock of pthreads is not stopped.
 *
 * Such a lock belongs to the kernel thread, and a waiter stops the kernel thread: if that
 * is to run the lock holder, without end. Libraries have them inside, where programs do
 * not see them. So the functions stand here before the C library's, count
 * what the thread holds, and call those. What comes due meanwhile is done when the last
 * one is unlocked.
 *
 * Not seen: mtx_lock() of C11, a stream's lock, locks that a library makes itself; and
 * locks at all in a build with sanitizers, which put theirs in these places.
 *
 * Read next: code.c, where the locks are that cannot be seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include "ut.h"

#if !UT_IS_SANITIZED

/* The next function of this name, the C library's. */
static void *find(void **at, const char *name)
{
	void *found = __atomic_load_n(at, __ATOMIC_RELAXED);

	if (unlikely(!found)) {
		found = dlsym(RTLD_NEXT, name);
		__atomic_store_n(at, found, __ATOMIC_RELAXED);
	}
	return found;
}

/* Before the lock is there; and so that the thread is still the same one. */
static void note_lock(void)
{
	struct ut_cpu *cpu;

	if (!ut_tls_cpu())
		return;
	ut_count_up();
	cpu = ut_this_cpu();
	if (cpu->curr)
		cpu->curr->nr_pthread_locks++;
	ut_count_down();
}

/* What came due meanwhile is done here. */
static void note_unlock(void)
{
	struct ut_cpu *cpu;

	if (!ut_tls_cpu())
		return;
	ut_disable();
	cpu = ut_this_cpu();
	/* It may have been locked before there were threads, or by another one. */
	if (cpu->curr && cpu->curr->nr_pthread_locks)
		cpu->curr->nr_pthread_locks--;
	ut_enable();
}

/* A mutex whose owner has died is locked. */
static int locked(int err)
{
	if (err && err != EOWNERDEAD)
		note_unlock();
	return err;
}

static int unlocked(int err)
{
	if (!err)
		note_unlock();
	return err;
}

#define REAL(name)							\
	static void *real;						\
	typeof(name) *call = (typeof(name) *)find(&real, #name)

#define LOCK(name, params, args)					\
	int name params							\
	{								\
		REAL(name);						\
		note_lock();						\
		return locked(call args);				\
	}

#define UNLOCK(name, params, args)					\
	int name params							\
	{								\
		REAL(name);						\
		return unlocked(call args);				\
	}

typedef pthread_mutex_t mutex;
typedef pthread_rwlock_t rwlock;
typedef pthread_spinlock_t spinlock;
typedef const struct timespec deadline;

LOCK(pthread_mutex_lock, (mutex * l), (l))
LOCK(pthread_mutex_trylock, (mutex * l), (l))
LOCK(pthread_mutex_timedlock, (mutex * l, deadline *at), (l, at))
LOCK(pthread_mutex_clocklock, (mutex * l, clockid_t c, deadline *at), (l, c, at))
UNLOCK(pthread_mutex_unlock, (mutex * l), (l))

LOCK(pthread_rwlock_rdlock, (rwlock * l), (l))
LOCK(pthread_rwlock_wrlock, (rwlock * l), (l))
LOCK(pthread_rwlock_tryrdlock, (rwlock * l), (l))
LOCK(pthread_rwlock_trywrlock, (rwlock * l), (l))
LOCK(pthread_rwlock_timedrdlock, (rwlock * l, deadline *at), (l, at))
LOCK(pthread_rwlock_timedwrlock, (rwlock * l, deadline *at), (l, at))
LOCK(pthread_rwlock_clockrdlock, (rwlock * l, clockid_t c, deadline *at), (l, c, at))
LOCK(pthread_rwlock_clockwrlock, (rwlock * l, clockid_t c, deadline *at), (l, c, at))
UNLOCK(pthread_rwlock_unlock, (rwlock * l), (l))

LOCK(pthread_spin_lock, (spinlock * l), (l))
LOCK(pthread_spin_trylock, (spinlock * l), (l))
UNLOCK(pthread_spin_unlock, (spinlock * l), (l))

/* While the function runs, others wait for it. */
int pthread_once(pthread_once_t *once, void (*function)(void))
{
	REAL(pthread_once);
	int err;

	note_lock();
	err = call(once, function);
	note_unlock();
	return err;
}

#endif
