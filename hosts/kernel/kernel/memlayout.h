/* SPDX-License-Identifier: MIT */
/*
 * memlayout.h - where things are: QEMU's `virt` machine, and a user's memory.
 *
 * Physical addresses (QEMU's hw/riscv/virt.c):
 *
 *	0x00100000	power-off and reset ("test finisher")
 *	0x0c000000	PLIC
 *	0x10000000	UART
 *	0x10001000	eight virtio-mmio slots, 4 KiB each
 *	0x80000000	RAM: OpenSBI, then the kernel at 0x80200000
 *
 * A user's addresses, [0, MAXVA); the kernel has the upper half of the same
 * table, which a user cannot touch:
 *
 *	0		text, read-only; then data and bss
 *			guard page: touched by a stack that overflows
 *			stack
 *			heap, which sbrk() grows upward
 *
 * Read next: riscv.h.
 */
#ifndef KERNEL_MEMLAYOUT_H
#define KERNEL_MEMLAYOUT_H

#define FINISHER	0x00100000L

#define PLIC		0x0c000000L

#define UART0		0x10000000L
#define UART0_IRQ	10

#define VIRTIO0		0x10001000L
#define VIRTIO0_IRQ	1
#define VIRTIO_STRIDE	0x1000L
#define VIRTIO_SLOTS	8

/* Where RAM starts, physically. PHYSTOP is xv6's end of it; ours is in the FDT. */
#define KERNBASE	0x80000000L
#define PHYSTOP		(KERNBASE + 128 * 1024 * 1024)

/*
 * xv6 keeps two pages of its own at the top of the user's addresses, and its
 * programs check that they cannot reach them. Here nothing is mapped there.
 */
#define TRAMPOLINE	(MAXVA - PGSIZE)
#define TRAPFRAME	(TRAMPOLINE - PGSIZE)

#endif
