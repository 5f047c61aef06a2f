/* SPDX-License-Identifier: MIT */
/*
 * plic.h - interrupts of devices. They go to the boot hart.
 *
 * Read next: trap.c.
 */
#ifndef KERNEL_PLIC_H
#define KERNEL_PLIC_H

#include <scx/types.h>

#define IRQ_MAX 64	/* the board uses 1 to 10 */

void plic_init(void);

/*
 * Call @fn(arg) on interrupt @irq, interrupts off and no lock held; and let the
 * interrupt through. Context: boot.
 */
void irq_register(u32 irq, void (*fn)(void *arg), void *arg);

void plic_interrupt(void);

#endif
