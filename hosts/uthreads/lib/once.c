/* SPDX-License-Identifier: MIT */
/*
 * once.c - what is to be done once is, and threads that need it wait: ut_once_call(),
 * and the guards of C++ variables that are static in a function.
 *
 *	0 -> BUSY, with its owner [-> AWAITED] -> DONE; 0 again: a constructor has thrown
 *
 * A compiler's code looks at the first byte of a guard, and calls __cxa_guard_acquire()
 * while that is 0. The C++ runtime's function stops the kernel thread until another
 * one has constructed the variable, or, with one kernel thread, calls it recursion.
 * These take their place, also for kernel threads that are not the machine's.
 *
 * Read next: wait.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ut.h"

#define DONE 1ULL
#define BUSY 0x100ULL
#define AWAITED 0x10000ULL
#define OWNER_SHIFT 32
#define INSIDE (1ULL << 63)	/* the owner is a thread of the library */
#define RETRY_NS 100000		/* until a thread looks again at what is done outside */

/* Threads of the library that wait for any of them: there are few, and not for long. */
static sl_lock_t lock;
static struct ut_queue waiters;

static u64 owned_by_caller(void)
{
	return ut_this_cpu() ? BUSY | INSIDE | ut_self() << OWNER_SHIFT :
			       BUSY | (u64)gettid() << OWNER_SHIFT;
}

static bool has_changed(uint64_t *state, uint64_t seen)
{
	return !__atomic_compare_exchange_n(state, &seen, seen | AWAITED, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
}

/* The owner is a thread of the library, and so is the caller. Context: preemption disabled. */
static int wait_inside(uint64_t *state, uint64_t seen)
{
	sl_lock(&lock);
	if (!has_changed(state, seen))
		return ut_wait_in(&waiters, &lock, UT_WAIT_ONCE, state, UT_NEVER);
	sl_unlock(&lock);
	return 0;
}

/* The caller is no thread of the library. The futex is the lower half. */
static int wait_outside(uint64_t *state, uint64_t seen)
{
	if (!has_changed(state, seen))
		syscall(SYS_futex, state, FUTEX_WAIT_PRIVATE, (u32)(seen | AWAITED), NULL, NULL, 0);
	return 0;
}

/* Return: 1: it is for the caller to do, and to call end(); 0: it is done; -errno. */
static int begin(uint64_t *state)
{
	u64 mine = owned_by_caller();
	int err = 0;

	while (!err) {
		uint64_t seen = smp_load_acquire(state);

		if (seen & DONE)
			return 0;
		if (!seen && __atomic_compare_exchange_n(state, &seen, mine, false,
							 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return 1;
		if (!seen || (seen & DONE))
			continue;
		if ((seen & ~AWAITED) == mine)
			err = -EDEADLK;
		else if (!ut_this_cpu())
			err = wait_outside(state, seen);
		else if (seen & INSIDE)
			err = ut_inside(wait_inside(state, seen));
		else if (ut_sleep_ns(RETRY_NS))
			err = ut_yield(); /* its time is over, or it is cancelled */
	}
	return err;
}

static void end(uint64_t *state, uint64_t now)
{
	struct ut_thread *t;

	if (!(__atomic_exchange_n(state, now, __ATOMIC_SEQ_CST) & AWAITED))
		return;
	syscall(SYS_futex, state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	if (!ut_this_cpu())
		return;
	ut_disable();
	sl_lock(&lock);
	while ((t = ut_queue_take(&waiters)))
		ut_wake_taken(t);
	sl_unlock(&lock);
	ut_enable();
}

int ut_once_call(ut_once *once, void (*fn)(void *arg), void *arg)
{
	int is_ours = begin(&once->state_);

	if (is_ours <= 0)
		return is_ours;
	fn(arg);
	end(&once->state_, DONE);
	return 0;
}

/* Weak: a program that is linked with the C++ runtime's own first keeps that. */
__attribute__((weak)) int __cxa_guard_acquire(uint64_t *guard)
{
	int is_ours = begin(guard);

	if (is_ours >= 0)
		return is_ours;
	sl_host_print(is_ours == -EDEADLK ?
			      "a static variable of C++ is needed by its own constructor" :
			      "a static variable of C++ is needed with preemption disabled, "
			      "while another thread constructs it");
	abort();
}

__attribute__((weak)) void __cxa_guard_release(uint64_t *guard)
{
	end(guard, DONE);
}

__attribute__((weak)) void __cxa_guard_abort(uint64_t *guard)
{
	end(guard, 0);
}
