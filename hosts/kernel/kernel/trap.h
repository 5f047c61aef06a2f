/* SPDX-License-Identifier: MIT */
/*
 * trap.h - what a trap saves, and what happens around it.
 *
 * A frame has the registers of what was interrupted. That of a trap from user mode is
 * the top of the kernel stack of its process; sscratch points there while the user
 * runs. A trap from kernel mode puts its frame below whatever was on the stack.
 *
 * Read next: trap.S, then trap.c.
 */
#ifndef KERNEL_TRAP_H
#define KERNEL_TRAP_H

#define FRAME_BYTES 272

#ifndef __ASSEMBLER__

#include <scx/types.h>

struct proc;

struct frame {
	struct proc *proc; /* whose stack this is; the kernel's tp */
	u64 ra, sp, gp, tp;
	u64 t0, t1, t2;
	u64 s0, s1;
	u64 a0, a1, a2, a3, a4, a5, a6, a7;
	u64 s2, s3, s4, s5, s6, s7, s8, s9, s10, s11;
	u64 t3, t4, t5, t6;
	u64 epc;
	u64 status; /* sstatus */
};

_Static_assert(sizeof(struct frame) == FRAME_BYTES, "trap.S counts on it");
_Static_assert(FRAME_BYTES % 16 == 0, "the stack stays aligned");

/* On each hart, once: which interrupts it hears. Leaves them off. */
void trap_init_hart(void);

/*
 * Get ready for user mode: end the process if it was killed, yield if the hart
 * has to schedule. Interrupts are off afterwards.
 * Context: a process that holds no lock. Return: its user frame.
 */
struct frame *trap_leave(void);

/* syscall.c: what the registers ask for. Context: a process, interrupts on. */
void syscall(struct frame *f);

#endif
#endif
