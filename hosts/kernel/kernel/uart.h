/* SPDX-License-Identifier: MIT */
/*
 * uart.h - the serial line of the console.
 *
 * Read next: console.c.
 */
#ifndef KERNEL_UART_H
#define KERNEL_UART_H

void uart_init(void);

/* Send one character, waiting until there is room. Context: any. */
void uart_putc(int c);

/* From now on what is typed interrupts (UART0_IRQ); boot, after plic_init(). */
void uart_listen(void);

/* The next character that was received, or -1. */
int uart_getc(void);

#endif
