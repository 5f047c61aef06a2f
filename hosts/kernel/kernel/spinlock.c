/* SPDX-License-Identifier: MIT */
/*
 * spinlock.c - spin locks, and interrupts off by counting.
 *
 * Called from everywhere. Must stay true: a process that is switched away holds
 * no lock and has exactly one push_off() outstanding; sched.c asserts it.
 *
 * Read next: sched.c.
 */
#include "spinlock.h"

#include "print.h"
#include "proc.h"
#include "sched.h"

void initlock(struct spinlock *lock, const char *name)
{
	lock->locked = 0;
	lock->name = name;
	lock->owner = NULL;
}

bool holding(const struct spinlock *lock)
{
	return __atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == myproc();
}

void push_off(void)
{
	u64 status;
	struct proc *p;

	asm volatile("csrrci %0, sstatus, %1" : "=r"(status) : "i"(SSTATUS_SIE) : "memory");
	p = myproc();
	if (p->nr_off++ == 0)
		p->intr_was_on = status & SSTATUS_SIE;
}

void pop_off(void)
{
	struct proc *p = myproc();

	SL_ASSERT(p->nr_off > 0);
	if (p->nr_off > 1 || !p->intr_was_on) {
		p->nr_off--;
		return;
	}
	/* Here, where nothing is held any more, a waiting switch happens. */
	if (__builtin_expect(__atomic_load_n(&p->cpu->resched, __ATOMIC_RELAXED), 0))
		schedule(SL_WHY_RESCHED);
	p->nr_off = 0;
	csr_set(sstatus, SSTATUS_SIE);
}

void acquire(struct spinlock *lock)
{
	push_off();
	if (holding(lock))
		panic("%s: acquired twice", lock->name);
	while (__atomic_exchange_n(&lock->locked, 1, __ATOMIC_ACQUIRE)) {
		while (__atomic_load_n(&lock->locked, __ATOMIC_RELAXED))
			sl_host_relax();
	}
	__atomic_store_n(&lock->owner, myproc(), __ATOMIC_RELAXED);
}

void release(struct spinlock *lock)
{
	if (!holding(lock))
		panic("%s: released by who does not hold it", lock->name);
	__atomic_store_n(&lock->owner, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->locked, 0, __ATOMIC_RELEASE);
	pop_off();
}
