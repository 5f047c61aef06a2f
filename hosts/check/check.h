/* SPDX-License-Identifier: MIT */
/*
 * check.h - hosts/sim with CPUs that interleave, to find what a policy cannot stand.
 *
 *	hosts/sim/loop.c -> interleave.c -> hosts/sim/cpu.c -> core/, policy
 *	  one event           this one and others               points: back to
 *	                      of the same instant               interleave.c
 *
 * Read next: interleave.c, then updates.c.
 */
#ifndef CHECK_H
#define CHECK_H

#include "sim.h"

/* interleave.c */
bool check_is_in_event(void);
bool check_is_on_stack(const void *at);
/* How many events have begun on @cpu. */
u64 check_event_number(s32 cpu);

/* updates.c: this CPU has done what it announced last. */
void check_settle(void);

#endif
