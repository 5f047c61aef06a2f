/* SPDX-License-Identifier: MIT */
/*
 * clock.h - a clock that stands still while the kernel does what an interrupt of a
 * timer asked for, so that a run is what the simulator would make of it.
 *
 * With one hart a timer interrupt makes the clock stand at the time it was meant for:
 * what follows from it, down to which process runs next, happens at that time,
 * however long the trap took. A slice of one tick then is over after one tick, not
 * two, and a wake-up is recorded when it was due. Several harts have to compare their
 * clocks, so there they run.
 *
 * Read next: clock.c.
 */
#ifndef LAB_CLOCK_H
#define LAB_CLOCK_H

#include <scx/types.h>

/* This hart's clock stands at @at_ns until clock_go_on_late() finds it reached. */
void clock_hold(u64 at_ns);
void clock_go_on_late(void);

#endif
