/* SPDX-License-Identifier: MIT */
/*
 * overhead.h - counts instructions by what they were spent on.
 *
 * A hart is always doing exactly one of the things below. The code that begins one says
 * so, and later goes back to what was before; the instructions in between are charged to
 * it, those of what is nested inside are not:
 *
 *	u32 was = overhead_enter(OVERHEAD_SCHED);
 *	...
 *	overhead_leave(was);
 *
 * `was` lives on the stack of the process, the rest in the hart. So it stays
 * right across a switch: the process that comes back leaves what it had entered,
 * wherever it runs then. `rdinstret` counts exactly under QEMU's -icount with
 * one hart; otherwise it is a clock, and the figures are times.
 *
 * Called through lab.h by trap.c, sched.c and timer.c. Must stay true: interrupts are off from the
 * call until it returns, and every way out of an enter has its leave.
 *
 * Read next: overhead.c, which adds them up per policy.
 */
#ifndef KERNEL_OVERHEAD_H
#define KERNEL_OVERHEAD_H

#include <schedlab/host.h>

#include "param.h"

enum overhead {
	OVERHEAD_USER,		/* a program's own instructions */
	OVERHEAD_KERNEL,	/* system calls: work that a program asked for */
	OVERHEAD_TRAP,		/* entry, exit, interrupts, page faults */
	OVERHEAD_SCHED,		/* inside the core, callbacks of the policy included */
	OVERHEAD_SWITCH,	/* from one stack to the next */
	OVERHEAD_IDLE,		/* includes the time asleep, in ns, under icount */
	NR_OVERHEADS,
};

struct overhead_hart {
	u64 since;			/* instret when the present one began */
	u32 now;			/* enum overhead */
	u64 instructions[NR_OVERHEADS];
	u64 entries[NR_OVERHEADS];	/* how often each began */
} __attribute__((aligned(64)));

extern struct overhead_hart overhead_harts[NCPU];

static inline u64 overhead_instret(void)
{
	u64 n;

	asm volatile("rdinstret %0" : "=r"(n));
	return n;
}

/* Return: what the hart was doing before, for overhead_leave(). */
static inline u32 overhead_enter(enum overhead what)
{
	struct overhead_hart *h = &overhead_harts[sl_host_cpu()];
	u64 n = overhead_instret();
	u32 was = h->now;

	h->instructions[was] += n - h->since;
	h->since = n;
	h->now = what;
	h->entries[what]++;
	return was;
}

static inline void overhead_leave(u32 was)
{
	struct overhead_hart *h = &overhead_harts[sl_host_cpu()];
	u64 n = overhead_instret();

	h->instructions[h->now] += n - h->since;
	h->since = n;
	h->now = was;
}

/* Instructions and entries of all harts under one policy since boot. */
struct overhead_total {
	u64 instructions[NR_OVERHEADS];
	u64 entries[NR_OVERHEADS];
};

/* Name of @what, such as "sched". */
const char *overhead_name(u32 what);

/*
 * What was counted since the last call is @policy_idx's. Called before the policy
 * changes, and before a read-out.
 */
void overhead_charge(u32 policy_idx);

/* Totals of a policy; idx as in sl_policy_table, one more: built-in FIFO. */
const struct overhead_total *overhead_total(u32 policy_idx);

#endif
