/* SPDX-License-Identifier: MIT */
/*
 * wait.h - waiting for something: wait queues, and locks that sleep.
 *
 *	acquire(&lk);				acquire(&lk);
 *	while (!condition) {			condition = true;
 *		if (killed(myproc()))		wake_all(&q);
 *			... give up ...		release(&lk);
 *		sleep_on(&q, &lk);
 *	}
 *
 * The lock guards both queue and condition, so no wake-up is lost. A queue is a
 * list through the processes themselves: nothing is searched, first in is first
 * out, and a woken process is already off the queue.
 *
 * sleep_on() may return early, once, when the process is killed; so callers look
 * at their condition again. A caller that cannot give up (a disk transfer) just
 * loops. One that can must ask killed() before each sleep_on(), and should be
 * woken by wake_all(): a killed process may have used up a wake_one().
 *
 * Read next: sched.c, which does it.
 */
#ifndef KERNEL_WAIT_H
#define KERNEL_WAIT_H

#include "list.h"
#include "spinlock.h"

struct waitq {
	struct link procs; /* the caller's lock guards it */
	const char *name;  /* what is waited for, as ps shows it: "pipe" */
};

void waitq_init(struct waitq *q, const char *name);

static inline bool waitq_is_empty(const struct waitq *q)
{
	return list_is_empty(&q->procs);
}

/**
 * sleep_on - wait for a wake-up
 * @q: queue
 * @lock: the one lock that the caller holds; released while it waits
 *
 * Context: a process, holding @lock and nothing else.
 */
void sleep_on(struct waitq *q, struct spinlock *lock);

/* Wake the first waiter, or all. Context: any; the queue's lock is held. */
void wake_one(struct waitq *q);
void wake_all(struct waitq *q);

/* A lock that may be held while sleeping. Not ended by kill. */
struct sleeplock {
	struct spinlock lock; /* guards: */
	struct waitq waiters;
	struct proc *owner; /* NULL: free */
};

void initsleeplock(struct sleeplock *lock, const char *name);
void acquiresleep(struct sleeplock *lock);
void releasesleep(struct sleeplock *lock);

#endif
