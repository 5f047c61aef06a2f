/* SPDX-License-Identifier: MIT */
/*
 * sysplay.c - system calls for play, which makes a process of each task of a
 * workload: it is forked, told what it is, and starts at its time.
 *
 * Called by syscall.c. Read next: user/play.c.
 */
#include <schedlab/host.h>
#include "job.h"
#include "policy.h"
#include "sysarg.h"

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

	copy_name(name, name_of(myproc()), sizeof(name));
	if (arg_u64(0) && copyin_name(name, arg_u64(0)))
		return SYS_ERROR;
	pid = kfork(true);
	/* It is a child, and held: no other process can have ended it. */
	child = pid > 0 ? proc_find(pid) : NULL;
	if (child)
		copy_name(name_of(child), name, sizeof(name));
	return pid;
}

static void release_fires(struct timer *timer, void *arg)
{
	struct proc *p;

	(void)timer;
	acquire(&family_lock);
	p = proc_find((int)(uintptr_t)arg);
	/* A killed process has been released before its time. */
	if (p && p->state == PROC_LIVE && p->is_held)
		proc_release(p);
	release(&family_lock);
}

/* int release(int pid, unsigned long at_ns): a child's, or one's parent's */
uint64 sys_release(void)
{
	u64 at_ns = arg_u64(1);
	struct proc *p;
	bool is_ours;

	acquire(&family_lock);
	p = proc_find(arg_int(0));
	is_ours = p && p->state == PROC_LIVE && p->is_held &&
		  (p->parent == myproc() || p->parent == myproc()->parent);
	if (is_ours)
		timer_stop(&p->timer);
	if (is_ours && at_ns > now_ns())
		timer_start(&p->timer, at_ns, release_fires, (void *)(uintptr_t)pid_of(p));
	else if (is_ours)
		proc_release(p);
	release(&family_lock);
	return is_ours ? 0 : SYS_ERROR;
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
