/* SPDX-License-Identifier: MIT */
/*
 * lateack.h - the boot argument late_ack: a fault of report 1, built in to be seen.
 *
 * Read next: lateack.c.
 */
#ifndef LAB_LATEACK_H
#define LAB_LATEACK_H

#include <scx/types.h>

struct cpu;

extern bool late_ack_is_wanted; /* constant after boot */

/* At boot: read the argument. */
void late_ack_init(void);

/* Yield inside the timer interrupt of @c if it asked for a switch. */
void late_ack_yield(struct cpu *c);

/* Ticks that an interrupt counted, or could have. */
u64 late_ack_ticks(void);

/* What uptime() says after @nr_true ticks of the board's clock. */
static inline u64 lab_ticks(u64 nr_true)
{
	return __builtin_expect(late_ack_is_wanted, 0) ? late_ack_ticks() : nr_true;
}

#endif
