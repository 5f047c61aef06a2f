/* SPDX-License-Identifier: MIT */
/*
 * sbi.h - what the firmware under the kernel (OpenSBI) does for it: timers where
 * the hart has no Sstc, interrupts to other harts, starting harts.
 *
 * Read next: main.c.
 */
#ifndef KERNEL_SBI_H
#define KERNEL_SBI_H

#include <scx/types.h>

extern bool has_sstc;	/* every hart can set its own timer */

/* Interrupt this hart when the board's clock is at @steps; ~0: never. */
void sbi_set_timer(u64 steps);

/* Interrupt another hart. */
void sbi_send_ipi(u32 hart);

/* Start @hart at physical address @entry, with a1 = @arg. Return: 0 or an error. */
s64 sbi_start_hart(u32 hart, u64 entry, u64 arg);

#endif
