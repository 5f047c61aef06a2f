/* SPDX-License-Identifier: MIT */
/*
 * usys.S - one stub per system call: its number into a7, and into the kernel,
 * which leaves the result in a0. Weak, so that a program may use the name.
 *
 * Read next: kernel/syscall.c, the other side.
 */
#include "kernel/syscall.h"

#define CALL(name) CALL_AS(name, SYS_##name)
#define CALL_AS(name, number)						\
	.section .text.name, "ax";					\
	.weak name;							\
	.type name, @function;						\
name:									\
	li	a7, number;						\
	ecall;								\
	ret;								\
	.size name, . - name

	CALL(fork)
	CALL(exit)
	CALL(wait)
	CALL(pipe)
	CALL(read)
	CALL(kill)
	CALL(exec)
	CALL(fstat)
	CALL(chdir)
	CALL(dup)
	CALL(getpid)
	CALL(sbrk)
	CALL_AS(sbrklazy, SYS_sbrk)
	CALL(sleep)
	CALL_AS(pause, SYS_sleep)
	CALL(uptime)
	CALL(open)
	CALL(write)
	CALL(mknod)
	CALL(unlink)
	CALL(link)
	CALL(mkdir)
	CALL(close)
	CALL(setpriority)
	CALL(settickets)
	CALL(setattr)
	CALL(getattr)
	CALL(getcontextswitches)
	CALL(waitx)
	CALL(getpinfo)
	CALL(nice)
	CALL(yield)
	CALL(setpolicy)
	CALL(getpolicy)
	CALL(schedlog)
	CALL(cycles)
	CALL(print_metrics)
	CALL(clock_ns)
	CALL(forkheld)
	CALL(release)
	CALL(sleep_until_ns)
	CALL(cputime_ns)
	CALL(syncs)
	CALL(syncop)
	CALL(setaffinity)
	CALL(poweroff)
	CALL(procs)
	CALL(memstat)
	CALL(dump)
	CALL(play_at)
	CALL(fsync)
