/* SPDX-License-Identifier: MIT */
/*
 * plic.c - the platform-level interrupt controller: devices, to the boot hart.
 *
 * One hart for all devices is enough for a disk and a console, and makes it
 * sure that a device's handler never runs twice at the same time.
 *
 * Called by trap.c. Read next: virtio_blk.c, a device.
 */
#include "board.h"

#include "memlayout.h"
#include "print.h"
#include "proc.h"

/* Of hart h in supervisor mode, context 2h + 1. */
#define PLIC_PRIORITY(irq)	(4UL * (irq))
#define PLIC_ENABLE(hart)	(0x2000UL + 0x80 * (2 * (hart) + 1))
#define PLIC_THRESHOLD(hart)	(0x200000UL + 0x1000 * (2 * (hart) + 1))
#define PLIC_CLAIM(hart)	(PLIC_THRESHOLD(hart) + 4)

static struct {
	void (*fn)(void *arg);
	void *arg;
} handlers[IRQ_MAX];

static u32 hart;

static volatile u32 *reg(u64 offset)
{
	return (volatile u32 *)((char *)phys_to_virt(PLIC) + offset);
}

void plic_init(void)
{
	hart = mycpu()->idx;
	*reg(PLIC_THRESHOLD(hart)) = 0;
}

void irq_register(u32 irq, void (*fn)(void *arg), void *arg)
{
	SL_ASSERT(irq > 0 && irq < IRQ_MAX && !handlers[irq].fn);
	handlers[irq].arg = arg;
	handlers[irq].fn = fn;
	*reg(PLIC_PRIORITY(irq)) = 1;
	*reg(PLIC_ENABLE(hart) + irq / 32 * 4) |= 1U << irq % 32;
}

__noinline void plic_interrupt(void)
{
	u32 irq;

	while ((irq = *reg(PLIC_CLAIM(hart)))) {
		if (irq >= IRQ_MAX || !handlers[irq].fn)
			panic("interrupt %u of no device", irq);
		handlers[irq].fn(handlers[irq].arg);
		*reg(PLIC_CLAIM(hart)) = irq;
	}
}
