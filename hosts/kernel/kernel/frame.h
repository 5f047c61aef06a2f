/* SPDX-License-Identifier: MIT */
/*
 * frame.h - the registers of what a trap interrupted, as trap.S saves them.
 *
 * The frame of a trap from user mode is the top of the kernel stack of its
 * process; sscratch points there while the user runs. A trap from kernel mode
 * puts its frame below whatever was on the stack.
 *
 * Read next: trap.S.
 */
#ifndef KERNEL_FRAME_H
#define KERNEL_FRAME_H

#define FRAME_BYTES 272

#ifndef __ASSEMBLER__

#include <scx/types.h>

struct proc;

struct frame {
	struct proc *proc;	/* whose stack this is; the kernel's tp */
	u64 ra, sp, gp, tp;
	u64 t0, t1, t2;
	u64 s0, s1;
	u64 a0, a1, a2, a3, a4, a5, a6, a7;
	u64 s2, s3, s4, s5, s6, s7, s8, s9, s10, s11;
	u64 t3, t4, t5, t6;
	u64 epc;
	u64 status;		/* sstatus */
};

_Static_assert(sizeof(struct frame) == FRAME_BYTES, "trap.S counts on it");
_Static_assert(FRAME_BYTES % 16 == 0, "the stack stays aligned");

#endif
#endif
