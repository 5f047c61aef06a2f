/* SPDX-License-Identifier: MIT */
/*
 * wait.c - wait queues, locks that sleep, and sleeping for a time.
 *
 * A process announces to the core that it will block before anybody can see it
 * waiting; a wake-up that comes before it has blocked then keeps it awake
 * (core/wake.c). So the queue's lock may be dropped in between.
 *
 * Read next: sched.c.
 */
#include "wait.h"

#include "core.h"
#include "print.h"
#include "sched.h"

/* Hand @p to the core. Context: interrupts off. */
static void wake(struct proc *p)
{
	struct cpu *c = mycpu();
	u32 was = overhead_enter(OVERHEAD_SCHED);
	bool by_nobody = c->in_interrupt || myproc() == &c->idle;

	sl_task_wake(&p->task, 0, by_nobody ? 0 : pid_of(myproc()));
	overhead_leave(was);
}

/*
 * Announce that this process will block. Return: false if it must not, because
 * it has just been killed and has not heard of it.
 */
static bool prepare_block(struct proc *p, const char *what)
{
	u32 was = overhead_enter(OVERHEAD_SCHED);

	p->waits_for = what;
	sl_task_prepare_block(&p->task);
	overhead_leave(was);
	/* proc_kill() sets this before it wakes: one of us sees the other. */
	if (!killed(p) || p->kill_was_told)
		return true;
	p->kill_was_told = true;
	return false;
}

void waitq_init(struct waitq *q, const char *name)
{
	q->first = NULL;
	q->last = NULL;
	q->name = name;
}

static void enqueue(struct waitq *q, struct proc *p)
{
	SL_ASSERT(!p->queue);
	p->queue = q;
	p->queue_next = NULL;
	p->queue_prev = q->last;
	if (q->last)
		q->last->queue_next = p;
	else
		q->first = p;
	q->last = p;
}

static void dequeue(struct waitq *q, struct proc *p)
{
	if (p->queue_prev)
		p->queue_prev->queue_next = p->queue_next;
	else
		q->first = p->queue_next;
	if (p->queue_next)
		p->queue_next->queue_prev = p->queue_prev;
	else
		q->last = p->queue_prev;
	p->queue = NULL;
}

void sleep_on(struct waitq *q, struct spinlock *lock)
{
	struct proc *p = myproc();
	bool must_block;

	SL_ASSERT(holding(lock));
	if (p->nr_off != 1)
		panic("%s: waits while it holds more than %s", q->name, lock->name);
	push_off();
	enqueue(q, p);
	must_block = prepare_block(p, q->name);
	release(lock);
	if (must_block)
		sched_block();
	p->waits_for = NULL;
	acquire(lock);
	pop_off();
	if (p->queue)
		dequeue(q, p);
}

bool wake_one(struct waitq *q)
{
	struct proc *p = q->first;

	if (!p)
		return false;
	dequeue(q, p);
	wake(p);
	return true;
}

void wake_all(struct waitq *q)
{
	while (wake_one(q))
		;
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

bool holdingsleep(struct sleeplock *lock)
{
	return lock->owner == myproc();
}

static void time_is_up(struct timer *timer, void *arg)
{
	(void)timer;
	wake(arg);
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
		sched_block();
		timer_stop(&p->timer);
	}
	p->waits_for = NULL;
	pop_off();
	return killed(p) ? -1 : 0;
}
