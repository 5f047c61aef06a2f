/* SPDX-License-Identifier: MIT */
/*
 * layout.h - where the kernel lives: the upper half of every page table.
 *
 *	ffffffc0'00000000  direct map: physical address + DIRECT_BASE
 *	   + 0                devices, RW-
 *	   + 80200000         the kernel: text R-X, constants R--, data RW-
 *	   + ...              all other RAM, RW-
 *	ffffffff'00000000  kernel stacks, 16 KiB apart: 8 KiB hole, 8 KiB stack
 *
 * A stack that overflows meets the hole under it. Bit 13 of a kernel stack
 * pointer is therefore always 1, which trap.S checks before it uses one.
 *
 * Read next: memlayout.h, the physical side; vm.c, which builds the map.
 */
#ifndef KERNEL_LAYOUT_H
#define KERNEL_LAYOUT_H

#define DIRECT_BASE	0xffffffc000000000
#define KERNEL_LOAD	0x80200000	/* physical; where OpenSBI jumps to */

#define STACKS_BASE	0xffffffff00000000
#define STACK_STRIDE	0x4000
#define STACK_BYTES	0x2000
#define STACK_BIT	13		/* set in every valid stack pointer */

#endif
