/* SPDX-License-Identifier: MIT */
/*
 * syssched.c - system calls about scheduling: attributes and policies.
 *
 * A process that was given attributes hands them to its children, like a weight.
 * They reach the policy through the core; a child that is still held back is not
 * known to the core, and its attributes wait with it (proc_release()).
 *
 * Read next: policy.c; bpf/attr.c.
 */
#include <schedlab/change.h>
#include <schedlab/machine.h>

#include "policy.h"
#include "print.h"
#include "sysarg.h"

/*
 * The process that is meant by @pid, 0 for the caller. Return: NULL: none.
 * Context: family_lock, or it may be another process at any time.
 */
static struct proc *proc_meant(int pid)
{
	return pid ? proc_find(pid) : myproc();
}

/* ---- attributes ------------------------------------------------------------ */

/* What getattr() can read; by enum task_attr_key. */
s64 proc_attr(const struct proc *p, u32 key)
{
	const struct task_attr *attr = &p->task.attr;

	switch (key) {
	case TASK_ATTR_PRIORITY:
		return attr->priority;
	case TASK_ATTR_TICKETS:
		return attr->tickets;
	case TASK_ATTR_CREDITS:
		return attr->credits;
	case TASK_ATTR_CAP:
		return attr->cap_percent;
	case TASK_ATTR_GROUP:
		return attr->group;
	case TASK_ATTR_DEADLINE:
		return (s64)attr->deadline_ns;
	case TASK_ATTR_BURST:
		return (s64)attr->burst_ns;
	}
	return p->task.weight;
}

/* The ranges of a workload's attributes, python/schedlab/workload/phases.py. */
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
static int set_attr(int pid, u32 key, s64 value)
{
	struct proc *p;
	int err = -1;

	if (!is_in_range(key, value))
		return -1;
	acquire(&family_lock);
	p = proc_meant(pid);
	if (p && p->state == PROC_LIVE)
		err = sl_task_set_attr(&p->task, key, (u64)value);
	release(&family_lock);
	return err ? -1 : 0;
}

/* int setattr(int pid, int key, long value) */
uint64 sys_setattr(void)
{
	return set_attr(arg_int(0), arg_int(1), arg_u64(2));
}

/* int setpriority(int pid, int priority) */
uint64 sys_setpriority(void)
{
	return set_attr(arg_int(0), TASK_ATTR_PRIORITY, arg_int(1));
}

/* int settickets(int tickets) */
uint64 sys_settickets(void)
{
	return set_attr(0, TASK_ATTR_TICKETS, arg_int(0));
}

/* int getattr(int pid, int key, long *value) */
uint64 sys_getattr(void)
{
	u32 key = arg_int(1);
	struct proc *p;
	bool is_given;
	s64 value = 0;

	acquire(&family_lock);
	p = proc_meant(arg_int(0));
	is_given = p && key < NR_TASK_ATTRS &&
		   (key == TASK_ATTR_WEIGHT || p->task.attr.given & 1U << key);
	if (is_given)
		value = proc_attr(p, key);
	release(&family_lock);
	return is_given ? copyout(arg_u64(2), &value, sizeof(value)) : SYS_ERROR;
}

/* int setaffinity(int pid, const unsigned long *mask, int words) */
uint64 sys_setaffinity(void)
{
	int nr_words = arg_int(2);
	struct cpumask mask = { 0 };
	struct proc *p;
	int err = 0;

	if (nr_words < 1 || nr_words > SL_MASK_WORDS ||
	    copyin(mask.bits, arg_u64(1), sizeof(mask.bits[0])))
		return SYS_ERROR;
	mask.bits[0] &= (1ULL << nr_cpus) - 1;
	if (!mask.bits[0])
		return SYS_ERROR;
	acquire(&family_lock);
	p = proc_meant(arg_int(0));
	if (p && p->state == PROC_LIVE)
		err = sl_task_set_affinity(&p->task, &mask);
	release(&family_lock);
	return p && !err ? 0 : SYS_ERROR;
}

/* ---- policies -------------------------------------------------------------- */

/* int setpolicy(const char *text) */
uint64 sys_setpolicy(void)
{
	char text[POLICY_TEXT_MAX];
	char why[POLICY_TEXT_MAX];
	int err;

	if (arg_str(0, text, sizeof(text)) < 0)
		return SYS_ERROR;
	acquiresleep(&policy_lock);
	err = policy_start(text, why);
	releasesleep(&policy_lock);
	if (!err)
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
	return copyout(arg_u64(1), text, (uint64)bytes + 1) ? SYS_ERROR : (uint64)bytes;
}
