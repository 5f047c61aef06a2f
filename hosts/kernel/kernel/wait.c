/* SPDX-License-Identifier: MIT */
/*
 * wait.c - wait queues, locks that sleep, and sleeping for a time.
 *
 * A process announces to the core that it will block before a waker can see it
 * waiting; a wake-up that comes before it has blocked then keeps it awake
 * (core/wake.c). So the queue's lock may be dropped in between.
 *
 * Read next: sched.c.
 */
#include "wait.h"

#include "print.h"
#include "sched.h"

/* Return: false if this process must not block: killed, and told for the first time. */
static bool prepare_block(struct proc *p, const char *what)
{
	sched_prepare_block(p, what);
	/* proc_kill() sets this before it wakes: one of both sees the other. */
	if (!killed(p) || p->kill_was_told)
		return true;
	p->kill_was_told = true;
	return false;
}

void waitq_init(struct waitq *q, const char *name)
{
	list_init(&q->procs);
	q->name = name;
}

void sleep_on(struct waitq *q, struct spinlock *lock)
{
	struct proc *p = myproc();
	bool must_block;

	SL_ASSERT(holding(lock) && !p->queue.next);
	if (p->nr_off != 1)
		panic("%s: waits while it holds more than %s", q->name, lock->name);
	push_off();
	list_add(&q->procs, &p->queue);
	must_block = prepare_block(p, q->name);
	release(lock);
	if (must_block)
		schedule(SL_WHY_BLOCK);
	acquire(lock);
	pop_off();
	if (p->queue.next)
		list_remove(&p->queue);
}

void wake_one(struct waitq *q)
{
	struct link *first = q->procs.next;

	if (waitq_is_empty(q))
		return;
	list_remove(first);
	sched_wake(thing_of(first, struct proc, queue), 0);
}

void wake_all(struct waitq *q)
{
	while (!waitq_is_empty(q))
		wake_one(q);
}

void initsleeplock(struct sleeplock *lock, const char *name)
{
	initlock(&lock->lock, name);
	waitq_init(&lock->waiters, name);
	lock->owner = NULL;
}

void acquiresleep(struct sleeplock *lock)
{
	acquire(&lock->lock);
	while (lock->owner)
		sleep_on(&lock->waiters, &lock->lock);
	lock->owner = myproc();
	release(&lock->lock);
}

void releasesleep(struct sleeplock *lock)
{
	acquire(&lock->lock);
	SL_ASSERT(lock->owner == myproc());
	lock->owner = NULL;
	wake_one(&lock->waiters);
	release(&lock->lock);
}

static void time_is_up(struct timer *timer, void *arg)
{
	(void)timer;
	sched_wake(arg, 0);
}

int sleep_until(u64 at_ns)
{
	struct proc *p = myproc();

	push_off();
	while (now_ns() < at_ns && !killed(p)) {
		/* Announced before the timer, which may fire at once elsewhere. */
		if (!prepare_block(p, "sleep"))
			break;
		timer_start(&p->timer, at_ns, time_is_up, p);
		schedule(SL_WHY_BLOCK);
		timer_stop(&p->timer);
	}
	pop_off();
	return killed(p) ? -1 : 0;
}
