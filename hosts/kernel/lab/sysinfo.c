/* SPDX-License-Identifier: MIT */
/*
 * sysinfo.c - system calls that tell about processes, memory, time and what
 * happened.
 *
 * Called by syscall.c. Read next: procinfo.h, what is told.
 */
#include <schedlab/machine.h>

#include "file.h"
#include "inode.h"
#include "job.h"
#include "procinfo.h"
#include "sysarg.h"

/* ---- processes ------------------------------------------------------------- */

/* int getcontextswitches(void) */
uint64 sys_getcontextswitches(void)
{
	u64 nr = 0;

	for (u32 i = 0; i < nr_cpus; i++)
		nr += sl_cpu_report((s32)i).nr_switches;
	return (uint64)(int)nr;
}

static int procinfo_state(const struct proc *p)
{
	if (p->state == PROC_ENDED)
		return PROC_ZOMBIE;
	switch (READ_ONCE(p->task.state)) {
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
	const char *what = READ_ONCE(t->wait_for);

	*to = (struct procinfo){
		.pid = pid_of(p),
		.ppid = parent ? pid_of(parent) : 0,
		.state = procinfo_state(p),
		.cpu = t->last_cpu,
		.nice = p->nice,
		.weight = t->weight,
		.attr_given = t->attr.given,
		.memory_bytes = p->size,
		.start_ns = p->born_ns,
		.cputime_ns = t->p.se.sum_exec_runtime,
		.wait_ns = t->wait_ns,
		.nr_voluntary = t->p.nvcsw,
		.nr_involuntary = t->p.nivcsw,
		.nr_migrations = t->nr_migrations,
	};
	for (u32 key = 0; key < NR_TASK_ATTRS; key++)
		to->attr[key] = proc_attr(p, key);
	copy_name(to->name, t->p.comm, sizeof(to->name));
	if (to->state == PROC_BLOCKED && what)
		copy_name(to->waits_for, what, sizeof(to->waits_for));
}

struct walk {
	u64 at; /* user address of the next one */
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
	procs_for_each(tell_proc, &walk)
		;
	return walk.err ? SYS_ERROR : (uint64)walk.nr;
}

/* int memstat(struct memstat *to) */
uint64 sys_memstat(void)
{
	struct memstat m = {
		.pages_total = job_pages_total(),
		.pages_free = nr_free_pages(),
		.blocks_free = nr_blocks_free(),
		.inodes_free = nr_inodes_free(),
		.inodes_in_use = nr_inodes_in_use(),
		.files_open = nr_files_open(),
		.procs = nr_procs(),
	};

	return (uint64)copyout(arg_u64(0), &m, sizeof(m));
}

/* int schedlog(struct sl_record *to, int max) */
uint64 sys_schedlog(void)
{
	return arg_int(1) < 0 ? SYS_ERROR : (uint64)record_drain(arg_u64(0), arg_int(1));
}

/* int print_metrics(void) */
uint64 sys_print_metrics(void)
{
	job_each_overhead(job_print_line);
	return 0;
}

struct pinfo_walk {
	struct pstat *to;
	u32 nr;
};

static bool add_pinfo(struct proc *p, void *arg)
{
	struct pinfo_walk *walk = arg;
	struct pstat *to = walk->to;

	if (walk->nr == NPROC)
		return false;
	to->inuse[walk->nr] = 1;
	to->pid[walk->nr] = pid_of(p);
	to->tickets[walk->nr] = p->task.attr.given & 1U << TASK_ATTR_TICKETS ?
					(int)p->task.attr.tickets :
					1;
	to->ticks[walk->nr++] = (int)(p->task.p.se.sum_exec_runtime / tick_ns);
	return true;
}

/* int getpinfo(struct pstat *to) */
uint64 sys_getpinfo(void)
{
	struct pinfo_walk walk = { .to = kalloc_zeroed() };
	int err;

	_Static_assert(sizeof(struct pstat) <= PGSIZE, "it fits a page");
	if (!walk.to)
		return SYS_ERROR;
	procs_for_each(add_pinfo, &walk)
		;
	err = copyout(arg_u64(0), walk.to, sizeof(*walk.to));
	kfree(walk.to);
	return err;
}

/* ---- time ------------------------------------------------------------------ */

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
	since_ns = (s64)(now_ns() - READ_ONCE(t->exec_start_ns));
	total_ns = t->p.se.sum_exec_runtime + (since_ns > 0 ? (u64)since_ns : 0);
	pop_off();
	return total_ns;
}

/* unsigned long cycles(void) */
uint64 sys_cycles(void)
{
	return csr_read(cycle);
}
