/* SPDX-License-Identifier: MIT */
/*
 * lateack.c - a timer interrupt that is acknowledged too late, as in report 1.
 *
 * With the boot argument late_ack=1 the interrupted process yields inside the
 * interrupt, which is acknowledged only when that process, or another one that
 * yielded so, runs again (report 1's trap() calls yield() before lapiceoi()). Until
 * then the hart takes no timer interrupt, and the clock of ticks stands still:
 *
 *	on time  interrupt -> acknowledge -> yield -> the next process, with ticks
 *	late     interrupt -> yield -> the next process, without ticks ... -> acknowledge
 *
 * x86 holds back an interrupt whose like is in service in its local APIC; here sie
 * masks it. Either keeps one of those held back pending, and the others are lost.
 * The board's clock, clock_ns(), goes on: the difference is what the fault hides.
 *
 * Called through lab.h by kernel/timer.c. Must stay true: without the argument
 * nothing here runs but late_ack_init(); one hart only.
 * Read next: docs/kernel.md, "Why report 1's clock stood still".
 */
#include "lateack.h"

#include "bootargs.h"
#include "print.h"
#include "proc.h"
#include "riscv.h"
#include "sched.h"

bool late_ack_is_wanted;

/* Interrupts off. */
static bool is_in_service; /* an interrupt came that is not acknowledged */
static u64 nr_counted;	   /* ticks when it came */
static u64 nr_lost;	   /* ticks so far that no interrupt counted */

void late_ack_init(void)
{
	late_ack_is_wanted = bootarg_u64("late_ack", 0);
	if (late_ack_is_wanted && nr_cpus > 1)
		panic("late_ack=1 with %u harts: a process may go on where nothing "
		      "waits for its acknowledgement; use one",
		      nr_cpus);
}

u64 late_ack_ticks(void)
{
	u64 nr;

	push_off();
	nr = is_in_service ? nr_counted : now_ns() / tick_ns - nr_lost;
	pop_off();
	return nr;
}

/* One tick stayed pending while the others were held back: it comes at once. */
static void acknowledge(void)
{
	u64 nr_passed = now_ns() / tick_ns - nr_lost - nr_counted;

	/* Another process that yielded so may have done it since. */
	if (!is_in_service)
		return;
	is_in_service = false;
	if (nr_passed > 1)
		nr_lost += nr_passed - 1;
	csr_set(sie, SIE_STIE);
}

/* The idle loop, which holds a push_off(), has nothing to yield. */
void late_ack_yield(struct cpu *c)
{
	struct proc *p = c->proc;

	if (p->nr_off || !__atomic_load_n(&c->resched, __ATOMIC_RELAXED))
		return;
	nr_counted = late_ack_ticks();
	is_in_service = true;
	csr_clear(sie, SIE_STIE);
	c->in_interrupt = false;
	preempt(p);
	acknowledge();
}
