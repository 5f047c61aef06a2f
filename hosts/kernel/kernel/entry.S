/* SPDX-License-Identifier: MIT */
/*
 * entry.S - the first instructions: from OpenSBI into C.
 *
 *	entry		the boot hart, by OpenSBI: a0 = hart, a1 = device tree
 *	entry_hart	the others, by main.c through SBI: a0 = hart
 *
 * OpenSBI 1.1 tells a hart to start before it writes down where: now and then one
 * comes to entry instead. So every hart but the first there goes to entry_hart.
 *
 * Both come with paging off, at physical addresses, while all code is linked for
 * the upper half. They set stvec to where they want to be and turn paging on:
 * the next instruction is not mapped, and the page fault jumps there.
 *
 * The loader of an ELF file zeroes .bss, so there is nothing to clear.
 *
 * Read next: main.c.
 */
#include "memlayout.h"

	/* t0: satp. Goes on in the upper half, with traps like all of the kernel. */
	.macro	turn_paging_on
	li	s0, DIRECT_BASE
	la	t1, 1f
	add	t1, t1, s0
	csrw	stvec, t1
	sfence.vma
	csrw	satp, t0
	.balign	4
1:	li	s0, 0			/* the end of every backtrace */
	la	t0, kernel_vec
	csrw	stvec, t0
	.endm

	.section .text.entry, "ax"
	.globl entry
entry:
	la	t0, nr_entered
	li	t1, 1
	amoadd.w.aqrl t0, t1, (t0)
	bnez	t0, entry_hart
	la	t0, boot_pages
	srli	t0, t0, 12
	li	t1, 8 << 60		/* Sv39 */
	or	t0, t0, t1
	turn_paging_on
	la	sp, boot_stack_top
	call	kernel_main
	unimp

	.globl entry_hart
	.balign	4
entry_hart:
	la	a1, start_harts		/* [hart], 32 bytes each */
	slli	t0, a0, 5
	add	a1, a1, t0
	ld	t0, 0(a1)		/* struct start_hart: satp, */
	ld	sp, 8(a1)		/* stack, */
	ld	tp, 16(a1)		/* idle loop */
	turn_paging_on
	call	kernel_main_hart
	unimp

/*
 * Enough of a page table to run C in: 1 GiB pages for devices and for RAM, both
 * at the direct map. vm_init() replaces it.
 */
	.data
	.balign	4096
boot_pages:
	.skip	256 * 8
	.quad	0x0000000000000c7	/* 0: valid, RW, accessed, dirty */
	.quad	0
	.quad	0x0000000200000cf	/* 0x80000000: RWX */
	.skip	253 * 8
nr_entered:
	.quad	0

/* Only the upper half, as for every kernel stack: see STACK_BIT in memlayout.h. */
	.bss
	.balign	STACK_STRIDE
boot_stack:
	.skip	STACK_STRIDE
boot_stack_top:
	.globl	emergency_stack_top
	.skip	STACK_STRIDE
emergency_stack_top:
