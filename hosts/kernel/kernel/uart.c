/* SPDX-License-Identifier: MIT */
/*
 * uart.c - the serial line: a 16550, as QEMU's virt board has it.
 *
 * Sending waits until there is room, so that a panic can speak too. Called by
 * print.c and console.c. Must stay true: no function here takes a lock.
 *
 * Read next: console.c.
 */
#include "board.h"

#include "memlayout.h"
#include "mem.h"

/* Registers, one byte each. */
enum uart_register {
	UART_DATA = 0,	     /* read: received; write: to send */
	UART_INTERRUPTS = 1, /* bit 0: on receipt */
	UART_FIFO = 2,	     /* bit 0: on; bits 1, 2: empty both */
	UART_LINE = 3,	     /* 3: eight bits, no parity */
	UART_STATUS = 5,     /* bit 0: received something; bit 5: may send */
};

static volatile u8 *reg(enum uart_register which)
{
	return (volatile u8 *)phys_to_virt(UART0) + which;
}

void uart_init(void)
{
	*reg(UART_INTERRUPTS) = 0;
	*reg(UART_LINE) = 3;
	*reg(UART_FIFO) = 7;
}

void uart_putc(int c)
{
	while (!(*reg(UART_STATUS) & 1 << 5))
		;
	*reg(UART_DATA) = (u8)c;
}

void uart_listen(void)
{
	*reg(UART_INTERRUPTS) = 1;
}

int uart_getc(void)
{
	return *reg(UART_STATUS) & 1 ? *reg(UART_DATA) : -1;
}
