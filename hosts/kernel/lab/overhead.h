/* SPDX-License-Identifier: MIT */
/*
 * overhead.h - counts instructions by what they were spent on, where the boot argument
 * `overhead` asks for it: it is a tenth of a switch.
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

enum overhead {
	OVERHEAD_USER,	 /* a program's own instructions */
	OVERHEAD_KERNEL, /* system calls: work that a program asked for */
	OVERHEAD_TRAP,	 /* entry, exit, interrupts, page faults */
	OVERHEAD_SCHED,	 /* inside the core, callbacks of the policy included */
	OVERHEAD_SWITCH, /* from one stack to the next */
	OVERHEAD_IDLE,	 /* includes the time asleep, in ns, under icount */
	NR_OVERHEADS,
};

extern bool overhead_is_counted; /* constant after boot */

static inline u64 overhead_instret(void)
{
	u64 n;

	asm volatile("rdinstret %0" : "=r"(n));
	return n;
}

/* What the next two do where it is counted. */
u32 overhead_count_enter(enum overhead what);
void overhead_count_leave(u32 was);

/* Return: what the hart was doing before, for overhead_leave(). */
static inline u32 overhead_enter(enum overhead what)
{
	return __builtin_expect(overhead_is_counted, 0) ? overhead_count_enter(what) : what;
}

static inline void overhead_leave(u32 was)
{
	if (__builtin_expect(overhead_is_counted, 0))
		overhead_count_leave(was);
}

/* At boot, before the harts schedule: the boot argument `overhead`. */
void overhead_init(void);

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
