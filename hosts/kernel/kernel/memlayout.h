/* SPDX-License-Identifier: MIT */
/*
 * memlayout.h - where things are: QEMU's `virt` machine, and page tables.
 *
 * Physical addresses (QEMU's hw/riscv/virt.c):
 *
 *	0x00100000	power-off and reset ("test finisher")
 *	0x0c000000	PLIC
 *	0x10000000	UART
 *	0x10001000	eight virtio-mmio slots, 4 KiB each
 *	0x80000000	RAM: OpenSBI, then the kernel at 0x80200000
 *
 * Virtual addresses, in every page table the same but for the user's half, which is
 * [0, MAXVA):
 *
 *	0		text, read-only; then data and bss
 *			guard page: touched by a stack that overflows
 *			stack
 *			heap, which sbrk() grows upward
 *	ffffffc0'00000000  direct map: physical address + DIRECT_BASE
 *	   + 0		      devices, RW-
 *	   + 80200000	      the kernel: text R-X, constants R--, data RW-
 *	   + ...	      all other RAM, RW-
 *	ffffffff'00000000  kernel stacks, 16 KiB apart: 8 KiB hole, 8 KiB stack
 *
 * A kernel stack that overflows meets the hole under it. Bit 13 of a kernel stack
 * pointer is therefore always 1, which trap.S checks before it uses one.
 *
 * Read next: riscv.h; vm.c, which builds the map.
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

/* Where RAM starts, physically. PHYSTOP is xv6's end of it; this kernel's is in the FDT. */
#define KERNBASE	0x80000000L
#define PHYSTOP		(KERNBASE + 128 * 1024 * 1024)

#define DIRECT_BASE	0xffffffc000000000
#define KERNEL_LOAD	0x80200000	/* physical; where OpenSBI jumps to */

#define STACKS_BASE	0xffffffff00000000
#define STACK_STRIDE	0x4000
#define STACK_BYTES	0x2000
#define STACK_BIT	13		/* set in every valid stack pointer */

/*
 * xv6 keeps two pages of its own at the top of the user's addresses, and its
 * programs check that they cannot reach them. Here nothing is mapped there.
 */
#define TRAMPOLINE	(MAXVA - PGSIZE)
#define TRAPFRAME	(TRAMPOLINE - PGSIZE)

#endif
