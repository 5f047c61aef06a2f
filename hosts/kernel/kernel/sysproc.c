/* SPDX-License-Identifier: MIT */
/*
 * sysproc.c - system calls about processes, time and the machine.
 *
 * Called by syscall.c. Read next: proc.c, where most of them lead.
 */
#include "core.h"
#include "file.h"
#include "inode.h"
#include "job.h"
#include "procinfo.h"
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
	8668, 7007, 5516, 4519, 3544, 2846, 2271, 1827, 1460, 1164,
	930, 744, 596, 479, 381, 305, 244, 195, 155, 125,
	100, 80, 64, 51, 41, 33, 26, 21, 17, 13,
	11, 8, 7, 5, 4, 4, 3, 2, 2, 1,
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
	sched_yield();
	pop_off();
	return 0;
}

/* ---- time ------------------------------------------------------------------ */

/* int sleep(int ticks): until the clock has ticked so often */
uint64 sys_sleep(void)
{
	int ticks = arg_int(0);

	if (ticks < 0)
		ticks = 0;
	return (uint64)sleep_until((nr_ticks() + (u64)ticks) * tick_ns);
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

/* int sleep_until_ns(unsigned long at_ns) */
uint64 sys_sleep_until_ns(void)
{
	return (uint64)sleep_until(arg_u64(0));
}

/* unsigned long cputime_ns(void): up to now, not only to the last tick */
uint64 sys_cputime_ns(void)
{
	struct sl_task *t = &myproc()->task;
	s64 since_ns;
	u64 total_ns;

	push_off();
	since_ns = (s64)(now_ns() - sl_peek(&t->exec_start_ns));
	total_ns = t->p.se.sum_exec_runtime + (since_ns > 0 ? (u64)since_ns : 0);
	pop_off();
	return total_ns;
}

/* unsigned long cycles(void) */
uint64 sys_cycles(void)
{
	return csr_read(cycle);
}

/* ---- the machine ----------------------------------------------------------- */

/* int getcontextswitches(void) */
uint64 sys_getcontextswitches(void)
{
	u64 nr = 0;

	for (u32 i = 0; i < nr_cpus; i++)
		nr += sl_peek(&sl_core.cpus[i].nr_switches);
	return (uint64)(int)nr;
}

static int procinfo_state(const struct proc *p)
{
	if (p->state == PROC_ENDED)
		return PROC_ZOMBIE;
	switch (sl_peek(&p->task.state)) {
	case SL_TASK_NEW:
		return PROC_NEW;
	case SL_TASK_BLOCKED:
		return PROC_BLOCKED;
	case SL_TASK_RUNNING:
		return PROC_RUNNING;
	}
	return PROC_RUNNABLE;
}

static void describe(const struct proc *p, struct procinfo *to)
{
	const struct sl_task *t = &p->task;
	const struct proc *parent = p->parent;
	const char *what = p->waits_for;

	*to = (struct procinfo){
		.pid = pid_of(p),
		.ppid = parent ? pid_of(parent) : 0,
		.state = procinfo_state(p),
		.cpu = t->last_cpu,
		.nice = p->nice,
		.weight = t->p.scx.weight,
		.attr_given = p->attr.given,
		.attr = {
			[TASK_ATTR_PRIORITY] = p->attr.priority,
			[TASK_ATTR_TICKETS] = p->attr.tickets,
			[TASK_ATTR_CREDITS] = p->attr.credits,
			[TASK_ATTR_CAP] = p->attr.cap_percent,
			[TASK_ATTR_GROUP] = p->attr.group,
			[TASK_ATTR_DEADLINE] = (long)p->attr.deadline_ns,
			[TASK_ATTR_BURST] = (long)p->attr.burst_ns,
		},
		.memory_bytes = p->size,
		.start_ns = p->born_ns,
		.cputime_ns = t->p.se.sum_exec_runtime,
		.wait_ns = t->wait_ns,
		.nr_voluntary = t->p.nvcsw,
		.nr_involuntary = t->p.nivcsw,
		.nr_migrations = t->nr_migrations,
	};
	copy_name(to->name, p->name, sizeof(to->name));
	if (what)
		copy_name(to->waits_for, what, sizeof(to->waits_for));
}

struct walk {
	u64 at;			/* user address of the next one */
	int left;
	int nr;
	int err;
};

static bool tell_proc(struct proc *p, void *arg)
{
	struct walk *walk = arg;
	struct procinfo info;

	walk->nr++;
	if (walk->left <= 0)
		return true;
	walk->left--;
	describe(p, &info);
	walk->err = copyout(walk->at, &info, sizeof(info));
	walk->at += sizeof(info);
	return !walk->err;
}

/* int procs(struct procinfo *to, int max) */
uint64 sys_procs(void)
{
	struct walk walk = { .at = arg_u64(0), .left = arg_int(1) };

	if (walk.left < 0)
		return SYS_ERROR;
	procs_for_each(tell_proc, &walk);
	return walk.err ? SYS_ERROR : (uint64)walk.nr;
}

/* int memstat(struct memstat *to) */
uint64 sys_memstat(void)
{
	struct memstat m = {
		.pages_total = nr_pages_total(),
		.pages_free = nr_free_pages(),
		.blocks_free = nr_blocks_free(),
		.inodes_free = nr_inodes_free(),
		.inodes_in_use = nr_inodes_in_use(),
		.files_open = nr_files_open(),
		.procs = nr_procs(),
	};

	return (uint64)copyout(arg_u64(0), &m, sizeof(m));
}

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
	push_off();
	job_end(arg_int(0));
}
