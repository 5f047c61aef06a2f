/* SPDX-License-Identifier: MIT */
/*
 * clock.c - holds the clock at the time that a timer was meant for.
 *
 * Called through lab.h, by kernel/timer.c before it calls what is due, and before
 * a process or the idle loop goes on. Read next: docs/design/0005-kernel.md.
 */
#include "clock.h"

#include "proc.h"

#define LATE_NS_MAX 100000	/* an interrupt that waited longer is no moment */

void clock_hold(u64 at_ns)
{
	mycpu()->clock_held_ns = at_ns;
}

void clock_go_on_late(void)
{
	u64 *held_ns = &mycpu()->clock_held_ns;

	if (*held_ns <= clock_running_ns())
		*held_ns = 0;
}

/* The last record may be later than @due_ns: then from there. */
void lab_clock_hold(u64 due_ns)
{
	struct cpu *c = mycpu();
	u64 now, last_ns;

	if (nr_cpus > 1 || c->clock_held_ns)
		return;
	now = clock_running_ns();
	last_ns = record_last_ns(c->idx);
	due_ns = due_ns > last_ns ? due_ns : last_ns;
	if (due_ns <= now && now - due_ns <= LATE_NS_MAX)
		clock_hold(due_ns);
}
