/* SPDX-License-Identifier: MIT */
/*
 * sysproc.c - system calls about processes, time and the machine.
 *
 * Called by syscall.c. Read next: proc.c, where most of them lead.
 */
#include <schedlab/sched.h>

#include "file.h"
#include "inode.h"
#include "policy.h"
#include "sched.h"
#include "sysarg.h"

/* ---- processes ------------------------------------------------------------- */

/* int fork(void) */
uint64 sys_fork(void)
{
	return (uint64)kfork(false);
}

/* int exit(int status) */
uint64 sys_exit(void)
{
	kexit(arg_int(0));
}

/* int wait(int *status) */
uint64 sys_wait(void)
{
	return (uint64)kwait(arg_u64(0), 0, 0);
}

/* int waitx(int *wait_ticks, int *run_ticks) */
uint64 sys_waitx(void)
{
	return (uint64)kwait(0, arg_u64(0), arg_u64(1));
}

/* int kill(int pid) */
uint64 sys_kill(void)
{
	return (uint64)kkill(arg_int(0));
}

/* int getpid(void) */
uint64 sys_getpid(void)
{
	return (uint64)pid_of(myproc());
}

/*
 * Fetch the strings of argv into one page, which is also all the room that a
 * stack has for them. Return: 0, or -1.
 */
static int fetch_argv(u64 from, char *page, char **argv)
{
	u64 room = PGSIZE;
	u64 at;
	int n;

	for (u32 i = 0; i <= MAXARG; i++, from += sizeof(at)) {
		if (copyin(&at, from, sizeof(at)))
			return -1;
		argv[i] = NULL;
		if (!at)
			return 0;
		if (i == MAXARG)
			return -1;
		n = copyinstr(page + PGSIZE - room, at, room);
		if (n < 0)
			return -1;
		argv[i] = page + PGSIZE - room;
		room -= (u64)n + 1;
	}
	return -1;
}

/* int exec(const char *path, char **argv) */
uint64 sys_exec(void)
{
	char path[MAXPATH];
	char *argv[MAXARG + 1];
	char *page;
	int result = -1;

	if (arg_str(0, path, sizeof(path)) < 0)
		return SYS_ERROR;
	page = kalloc();
	if (!page)
		return SYS_ERROR;
	if (!fetch_argv(arg_u64(1), page, argv))
		result = kexec(path, argv);
	kfree(page);
	return (uint64)result;
}

/* char *sbrk(int bytes) */
uint64 sys_sbrk(void)
{
	uint64 old = myproc()->size;

	return kgrow(arg_int(0)) ? SYS_ERROR : old;
}

/* Linux's weights of nice -20 to 19, with 100 in the middle instead of 1024. */
static const u16 weight_of_nice[40] = {
	8668, 7007, 5516, 4519, 3544, 2846, 2271, 1827, 1460, 1164, 930, 744, 596, 479,
	381,  305,  244,  195,	155,  125,  100,  80,	64,   51,   41,	 33,  26,  21,
	17,   13,   11,	  8,	7,    5,    4,	  4,	3,    2,    2,	 1,
};

/* int nice(int increment) */
uint64 sys_nice(void)
{
	struct proc *p = myproc();
	s64 nice = (s64)p->nice + arg_int(0);

	nice = nice < -20 ? -20 : nice > 19 ? 19 : nice;
	p->nice = (s32)nice;
	push_off();
	sl_task_set_attr(&p->task, TASK_ATTR_WEIGHT, weight_of_nice[nice + 20]);
	pop_off();
	return (uint64)nice;
}

/* int yield(void) */
uint64 sys_yield(void)
{
	push_off();
	schedule(SL_WHY_YIELD);
	pop_off();
	return 0;
}

/* ---- time ------------------------------------------------------------------ */

/* int sleep(int ticks): until the clock has ticked so often, or stood still and then did */
uint64 sys_sleep(void)
{
	u64 until = nr_ticks() + (u64)(arg_int(0) > 0 ? arg_int(0) : 0);

	while (nr_ticks() < until)
		if (sleep_until((now_ns() / tick_ns + until - nr_ticks()) * tick_ns))
			return SYS_ERROR;
	return 0;
}

/* int uptime(void) */
uint64 sys_uptime(void)
{
	return (uint64)(int)nr_ticks();
}

/* unsigned long clock_ns(void) */
uint64 sys_clock_ns(void)
{
	return now_ns();
}

/* ---- the machine ----------------------------------------------------------- */

/* int dump(void) */
uint64 sys_dump(void)
{
	push_off();
	sl_dump();
	pop_off();
	return 0;
}

/* int poweroff(int status) */
uint64 sys_poweroff(void)
{
	fs_sync();
	acquiresleep(&policy_lock); /* never released: the policy ends with the machine */
	push_off();
	lab_poweroff(arg_int(0));
}
