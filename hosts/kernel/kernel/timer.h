/* SPDX-License-Identifier: MIT */
/*
 * timer.h - time, and what is to happen later.
 *
 * Time is the board's clock, 100 ns a step on QEMU. Each hart has a heap of
 * timers and its own interrupt, set to whatever comes first: a timer, or, while
 * a process runs, the tick. An idle hart has no tick.
 *
 * Read next: timer.c.
 */
#ifndef KERNEL_TIMER_H
#define KERNEL_TIMER_H

#include <schedlab/host.h>

#include "spinlock.h"

struct cpu;
struct timer;

typedef void (*timer_fn)(struct timer *timer, void *arg);

/* Zeroed memory is a stopped timer. timers.lock of its hart guards all. */
struct timer {
	u64 at_ns;
	u64 seq; /* of two for the same time, the older goes first */
	timer_fn fn;
	void *arg;
	struct cpu *cpu;     /* whose heap it is in; NULL: none */
	struct timer *child; /* pairing heap: first child, */
	struct timer *next;  /* next sibling, */
	struct timer *prev;  /* previous sibling, or the parent */
};

struct timers {
	struct spinlock lock;
	struct timer *first; /* the earliest, root of the heap */
	u64 seq;
	u64 armed_ns; /* when the interrupt comes; ~0: never */
};

extern u64 tick_ns; /* boot argument; default 10 ms */

/* Time since the machine started; never goes backward on a hart. */
static inline u64 now_ns(void)
{
	return sl_host_now_ns();
}

/* Ticks since the machine started; lab/lateack.c may make them fewer. */
static inline u64 nr_ticks(void)
{
	return lab_ticks(now_ns() / tick_ns);
}

/*
 * Call @fn(timer, arg) at @at_ns or soon after, from the timer interrupt of
 * this hart, interrupts off and no lock held. A running timer is moved.
 * Context: any; locks of the core may be held.
 */
void timer_start(struct timer *timer, u64 at_ns, timer_fn fn, void *arg);

/*
 * Return: whether it was running. Otherwise its function may just be running,
 * on another hart. Context: as timer_start().
 */
bool timer_stop(struct timer *timer);

/*
 * Block until @at_ns. Return: 0, or -1 when killed. Context: a process, no lock.
 */
int sleep_until(u64 at_ns);

/* ---- for trap.c, sched.c, main.c ----------------------------------------- */

void timers_init(void);		      /* at boot */
void timer_interrupt(void);	      /* interrupts off */
void timer_arm_tick(struct cpu *cpu); /* a process begins to run on this hart */

#endif
