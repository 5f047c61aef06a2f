/* SPDX-License-Identifier: MIT */
/*
 * sysarg.h - how the functions behind system calls get their arguments.
 *
 * A system call is `uint64 sys_NAME(void)`, listed in syscall.c; what it returns
 * is the user's a0, and -1 is the one error. Arguments are a0 to a5.
 *
 * Read next: syscall.c.
 */
#ifndef KERNEL_SYSARG_H
#define KERNEL_SYSARG_H

#include "proc.h"
#include "types.h"

#define SYS_ERROR ((uint64)-1)

static inline uint64 arg_u64(int n)
{
	return (&myproc()->frame->a0)[n];
}

static inline int arg_int(int n)
{
	return (int)arg_u64(n);
}

/* Copy a string argument, 0 included. Return: its length, or -1. */
static inline int arg_str(int n, char *to, uint64 bytes)
{
	return copyinstr(to, arg_u64(n), bytes);
}

#endif
