/* SPDX-License-Identifier: MIT */
/*
 * syscall.h - numbers of the system calls: a7 holds one, a0 to a5 its
 * arguments, and a0 afterwards its result.
 *
 * 1 to 21 are xv6's and will not change. The rest is new; docs/kernel.md has
 * a line for every one, and a test compares it with this file. user/usys.S
 * makes its stubs from this list as well.
 *
 * Read next: user/user.h, the same calls as C functions.
 */
#ifndef KERNEL_SYSCALL_H
#define KERNEL_SYSCALL_H

#define SYS_fork		1
#define SYS_exit		2
#define SYS_wait		3
#define SYS_pipe		4
#define SYS_read		5
#define SYS_kill		6
#define SYS_exec		7
#define SYS_fstat		8
#define SYS_chdir		9
#define SYS_dup			10
#define SYS_getpid		11
#define SYS_sbrk		12
#define SYS_sleep		13
#define SYS_uptime		14
#define SYS_open		15
#define SYS_write		16
#define SYS_mknod		17
#define SYS_unlink		18
#define SYS_link		19
#define SYS_mkdir		20
#define SYS_close		21
#define SYS_setpriority		22
#define SYS_settickets		23
#define SYS_setattr		24
#define SYS_getattr		25
#define SYS_getcontextswitches	26
#define SYS_waitx		27
#define SYS_getpinfo		28
#define SYS_nice		29
#define SYS_yield		30
#define SYS_setpolicy		31
#define SYS_getpolicy		32
#define SYS_schedlog		33
#define SYS_cycles		34
#define SYS_print_metrics	35
#define SYS_clock_ns		36
#define SYS_forkheld		37
#define SYS_release		38
#define SYS_sleep_until_ns	39
#define SYS_cputime_ns		40
#define SYS_syncs		41
#define SYS_syncop		42
#define SYS_setaffinity		43
#define SYS_poweroff		44
#define SYS_procs		45
#define SYS_memstat		46
#define SYS_dump		47
#define SYS_play_at		48
#define SYS_fsync		49
#define NR_SYSCALLS		50	/* one more than the highest */

#endif
