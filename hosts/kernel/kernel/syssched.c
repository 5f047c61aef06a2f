/* SPDX-License-Identifier: MIT */
/*
 * syssched.c - system calls about scheduling: attributes, policies, records, and
 * what play needs.
 *
 * A process that was given attributes hands them to its children, like a weight.
 * They reach the policy through the core; a child that is still held back is not
 * known to the core, and its attributes wait with it (proc_release()).
 *
 * Read next: policy.c; core/attr.c.
 */
#include <core.h>

#include "job.h"
#include "overhead.h"
#include "policy.h"
#include "print.h"
#include "procinfo.h"
#include "record.h"
#include "sysarg.h"

/* The process that an argument names: 0 is the caller. Return: NULL: none. */
static struct proc *arg_proc(int n)
{
	int pid = arg_int(n);

	return pid ? proc_find(pid) : myproc();
}

/* ---- attributes ------------------------------------------------------------ */

/* What getattr() can read; by enum task_attr_key. */
static s64 attr_value(const struct proc *p, u32 key)
{
	switch (key) {
	case TASK_ATTR_PRIORITY:
		return p->attr.priority;
	case TASK_ATTR_TICKETS:
		return p->attr.tickets;
	case TASK_ATTR_CREDITS:
		return p->attr.credits;
	case TASK_ATTR_CAP:
		return p->attr.cap_percent;
	case TASK_ATTR_GROUP:
		return p->attr.group;
	case TASK_ATTR_DEADLINE:
		return (s64)p->attr.deadline_ns;
	case TASK_ATTR_BURST:
		return (s64)p->attr.burst_ns;
	}
	return p->task.p.scx.weight;
}

/* The ranges of a workload's attributes, python/schedlab/phases.py. */
static bool is_in_range(u32 key, s64 value)
{
	switch (key) {
	case TASK_ATTR_PRIORITY:
	case TASK_ATTR_CREDITS:
		return value == (s32)value;
	case TASK_ATTR_TICKETS:
		return value >= 1 && value == (u32)value;
	case TASK_ATTR_CAP:
	case TASK_ATTR_GROUP:
		return value == (u32)value;
	case TASK_ATTR_DEADLINE:
	case TASK_ATTR_BURST:
		return value >= 0;
	case TASK_ATTR_WEIGHT:
		return value >= 1 && value <= 10000;
	}
	return false;
}

/* Return: 0; -1: no such process, key or value, or the policy's map is full. */
static int set_attr(struct proc *p, u32 key, s64 value)
{
	int err = -1;

	if (!p || !is_in_range(key, value))
		return -1;
	/* A process that lives cannot be taken from the core meanwhile. */
	acquire(&family_lock);
	if (p->state == PROC_LIVE) {
		err = 0;
		if (sl_load(&p->is_held) && key == TASK_ATTR_WEIGHT)
			p->task.p.scx.weight = (u32)value;
		else if (!sl_load(&p->is_held))
			err = sl_task_set_attr(&p->task, key, (u64)value);
		if (!err && key != TASK_ATTR_WEIGHT)
			sl_attr_set(&p->attr, key, (u64)value);
	}
	release(&family_lock);
	return err ? -1 : 0;
}

/* int setattr(int pid, int key, long value) */
uint64 sys_setattr(void)
{
	return set_attr(arg_proc(0), arg_int(1), arg_u64(2));
}

/* int setpriority(int pid, int priority) */
uint64 sys_setpriority(void)
{
	return set_attr(arg_proc(0), TASK_ATTR_PRIORITY, arg_int(1));
}

/* int settickets(int tickets) */
uint64 sys_settickets(void)
{
	return set_attr(myproc(), TASK_ATTR_TICKETS, arg_int(0));
}

/* int getattr(int pid, int key, long *value) */
uint64 sys_getattr(void)
{
	struct proc *p = arg_proc(0);
	u32 key = arg_int(1);
	s64 value;

	if (!p || key >= NR_TASK_ATTRS ||
	    (key != TASK_ATTR_WEIGHT && !(p->attr.given & 1U << key)))
		return SYS_ERROR;
	value = attr_value(p, key);
	return copyout(arg_u64(2), &value, sizeof(value));
}

/* int setaffinity(int pid, const unsigned long *mask, int words) */
uint64 sys_setaffinity(void)
{
	struct proc *p = arg_proc(0);
	int nr_words = arg_int(2);
	u64 cpus = 0;

	if (!p || nr_words < 1 || nr_words > SL_MASK_WORDS ||
	    copyin(&cpus, arg_u64(1), sizeof(cpus)))
		return SYS_ERROR;
	cpus &= (1ULL << nr_cpus) - 1;
	if (!cpus)
		return SYS_ERROR;
	acquire(&family_lock);
	if (p->state == PROC_LIVE) {
		/* In place: the core may hold the pointer, and reads it in words. */
		sl_poke(&p->mask.bits[0], cpus);
		if (sl_load(&p->is_held)) {
			p->task.p.cpus_ptr = &p->mask;
			p->task.p.nr_cpus_allowed = __builtin_popcountll(cpus);
		} else {
			sl_task_set_affinity(&p->task, &p->mask);
		}
	}
	release(&family_lock);
	return 0;
}

/* ---- policies -------------------------------------------------------------- */

/* int setpolicy(const char *text) */
uint64 sys_setpolicy(void)
{
	char text[POLICY_TEXT_MAX];
	char why[POLICY_TEXT_MAX];

	if (arg_str(0, text, sizeof(text)) < 0)
		return SYS_ERROR;
	if (!policy_choose(text, why))
		return 0;
	printk("setpolicy: %s\n", why);
	return SYS_ERROR;
}

/* int getpolicy(int which, char *to, int max) */
uint64 sys_getpolicy(void)
{
	char text[POLICY_TEXT_MAX];
	int which = arg_int(0);
	int max = arg_int(2);
	int bytes = which < -1 ? -1 : policy_describe(which, text, sizeof(text));

	if (bytes < 0 || max < 1)
		return SYS_ERROR;
	bytes = bytes < max ? bytes : max - 1;
	text[bytes] = 0;
	return copyout(arg_u64(1), text, (uint64)bytes + 1) ? SYS_ERROR :
							      (uint64)bytes;
}

/* ---- what happened --------------------------------------------------------- */

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
	to->tickets[walk->nr] = p->attr.given & 1U << TASK_ATTR_TICKETS ?
				(int)p->attr.tickets : 1;
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
	procs_for_each(add_pinfo, &walk);
	err = copyout(arg_u64(0), walk.to, sizeof(*walk.to));
	kfree(walk.to);
	return err;
}

/* ---- for play -------------------------------------------------------------- */

/* A name that may be longer than there is room for. Return: 0, or -1. */
static int copyin_name(char *to, uint64 from)
{
	u32 i = 0;

	do {
		if (copyin(&to[i], from + i, 1))
			return -1;
	} while (to[i] && ++i < TASK_COMM_LEN - 1);
	to[i] = 0;
	return 0;
}

/* int forkheld(const char *name) */
uint64 sys_forkheld(void)
{
	char name[TASK_COMM_LEN];
	struct proc *child;
	int pid;

	copy_name(name, myproc()->name, sizeof(name));
	if (arg_u64(0) && copyin_name(name, arg_u64(0)))
		return SYS_ERROR;
	pid = kfork(true);
	/* It is ours, and held: nobody else can have ended it. */
	child = pid > 0 ? proc_find(pid) : NULL;
	if (child) {
		copy_name(child->name, name, sizeof(child->name));
		copy_name(child->task.p.comm, name, sizeof(child->task.p.comm));
	}
	return pid;
}

static void release_fires(struct timer *timer, void *arg)
{
	(void)timer;
	proc_release(arg);
}

/* int release(int pid, unsigned long at_ns): a child's, or one's parent's */
uint64 sys_release(void)
{
	struct proc *p = proc_find(arg_int(0));
	u64 at_ns = arg_u64(1);
	bool is_ours;

	acquire(&family_lock);
	is_ours = p && p->state == PROC_LIVE && sl_load(&p->is_held) &&
		  (p->parent == myproc() || p->parent == myproc()->parent);
	release(&family_lock);
	if (!is_ours)
		return SYS_ERROR;
	if (at_ns > now_ns()) {
		timer_start(&p->timer, at_ns, release_fires, p);
		return 0;
	}
	return proc_release(p) ? 0 : SYS_ERROR;
}

/* int play_at(const char *policy, unsigned long start_ns, unsigned long end_ns) */
uint64 sys_play_at(void)
{
	char text[POLICY_TEXT_MAX];

	if (arg_str(0, text, sizeof(text)) < 0)
		return SYS_ERROR;
	job_play(text, arg_u64(1), arg_u64(2));
	return 0;
}
