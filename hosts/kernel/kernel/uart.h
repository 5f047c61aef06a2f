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

#endif
