/* SPDX-License-Identifier: MIT */
/*
 * syscall.c - the table of system calls, by number (syscall.h).
 *
 * Called by trap.c. Must stay true: whatever a user passes, the answer is a
 * result or -1, never a panic.
 *
 * Read next: sysproc.c, sysfile.c, syssched.c; lab.h for the others.
 */
#include "syscall.h"

#include "sysarg.h"
#include "trap.h"

/* Every system call: FN(name) declares it, then lists it. */
#define ALL_SYSCALLS(FN)						\
	FN(fork) FN(exit) FN(wait) FN(pipe) FN(read) FN(kill) FN(exec)	\
	FN(fstat) FN(chdir) FN(dup) FN(getpid) FN(sbrk) FN(sleep)	\
	FN(uptime) FN(open) FN(write) FN(mknod) FN(unlink) FN(link)	\
	FN(mkdir) FN(close) FN(setpriority) FN(settickets) FN(setattr)	\
	FN(getattr) FN(waitx) FN(nice) FN(yield) FN(setpolicy)		\
	FN(getpolicy) FN(clock_ns) FN(setaffinity) FN(poweroff)		\
	FN(dump) FN(fsync)						\
	LAB_SYSCALLS(FN)

#define DECLARE(name) uint64 sys_##name(void);
#define LIST(name) [SYS_##name] = sys_##name,

ALL_SYSCALLS(DECLARE)

static uint64 (*const syscalls[NR_SYSCALLS])(void) = { ALL_SYSCALLS(LIST) };

void syscall(struct frame *f)
{
	u64 number = f->a7;

	if (number < NR_SYSCALLS && syscalls[number])
		f->a0 = syscalls[number]();
	else
		f->a0 = SYS_ERROR;
}
