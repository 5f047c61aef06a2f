/* SPDX-License-Identifier: MIT */
/*
 * syscalls.h - the system call that a user's registers ask for.
 *
 * Read next: syscall.c.
 */
#ifndef KERNEL_SYSCALLS_H
#define KERNEL_SYSCALLS_H

#include "frame.h"

/* Context: a process, interrupts on. */
void syscall(struct frame *f);

#endif
