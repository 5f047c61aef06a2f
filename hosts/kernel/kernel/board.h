/* SPDX-License-Identifier: MIT */
/*
 * board.h - what firmware, interrupt controller and serial line do for the kernel.
 *
 * Read next: sbi.c, plic.c, uart.c.
 */
#ifndef KERNEL_BOARD_H
#define KERNEL_BOARD_H

#include <scx/types.h>

/* sbi.c: OpenSBI. */

extern bool has_sstc; /* every hart can set its own timer */

/* Interrupt this hart when the board's clock is at @steps; ~0: never. */
void sbi_set_timer(u64 steps);

/* Interrupt another hart. */
void sbi_send_ipi(u32 hart);

/* Start @hart at physical address @entry, with a1 = @arg. Return: 0 or an error. */
s64 sbi_start_hart(u32 hart, u64 entry, u64 arg);

/* plic.c: interrupts of devices. They go to the boot hart. */

#define IRQ_MAX 64	/* the board uses 1 to 10 */

void plic_init(void);

/*
 * Call @fn(arg) on interrupt @irq, interrupts off and no lock held; and let the
 * interrupt through. Context: boot.
 */
void irq_register(u32 irq, void (*fn)(void *arg), void *arg);

void plic_interrupt(void);

/* uart.c: the serial line of the console. */

void uart_init(void);

/* Send one character, waiting until there is room. Context: any. */
void uart_putc(int c);

/* From now on what is typed interrupts (UART0_IRQ); boot, after plic_init(). */
void uart_listen(void);

/* The next character that was received, or -1. */
int uart_getc(void);

#endif
