/* SPDX-License-Identifier: MIT */
/*
 * spinlock.h - locks that are held for a short time, with interrupts off.
 *
 * acquire() turns interrupts off on this hart until the last lock is released,
 * so that an interrupt handler cannot wait for a lock that the code under it
 * holds. A process that holds none can be preempted, in the kernel too:
 * release() of the last lock is where a waiting switch happens.
 *
 * The count of locks held is the process's (or the idle loop's), not the hart's:
 * a process switches with exactly one push_off() outstanding, its own, and
 * finds it again wherever it goes on.
 *
 * Read next: wait.h, how to wait for longer.
 */
#ifndef KERNEL_SPINLOCK_H
#define KERNEL_SPINLOCK_H

#include <scx/types.h>

struct proc;

struct spinlock {
	u32 locked;	    /* atomic */
	const char *name;   /* for panics */
	struct proc *owner; /* the holder; NULL: none */
};

void initlock(struct spinlock *lock, const char *name);

/* Context: any. Panics if the caller holds it already. */
void acquire(struct spinlock *lock);

/* Context: the caller holds it. May switch to another process. */
void release(struct spinlock *lock);

/* Does this process (or idle loop) hold it? Context: any. */
bool holding(const struct spinlock *lock);

/* Interrupts off until as many pop_off(); the last one may switch. */
void push_off(void);
void pop_off(void);

#endif
