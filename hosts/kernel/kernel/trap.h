/* SPDX-License-Identifier: MIT */
/*
 * trap.h - what happens around a trap.
 *
 * Read next: trap.c.
 */
#ifndef KERNEL_TRAP_H
#define KERNEL_TRAP_H

#include "frame.h"

/* On each hart, once: which interrupts it hears. Leaves them off. */
void trap_init_hart(void);

/*
 * Get ready for user mode: end the process if it was killed, give way if
 * somebody wants the hart. Interrupts are off afterwards.
 * Context: a process that holds no lock. Return: its user frame.
 */
struct frame *trap_leave(void);

/* syscall.c: what the registers ask for. Context: a process, interrupts on. */
void syscall(struct frame *f);

#endif
