/* SPDX-License-Identifier: MIT */
/*
 * proc.h - processes and harts.
 *
 * All processes are made at boot, unused, and used again and again: their
 * memory is never anything else, which the core relies on (task.h). Free ones
 * are on a list, those with a pid in a hash table, children on their parent's
 * lists: nothing is ever searched from end to end.
 *
 * The register tp points to the current process (or to the hart's idle loop),
 * so myproc() is right even if the process moves to another hart in the middle.
 * mycpu() is only right while interrupts are off.
 *
 * Read next: proc.c, then sched.c.
 */
#ifndef KERNEL_PROC_H
#define KERNEL_PROC_H

#include <schedlab/host.h>
#include <scx/attrs.h>

#include "trap.h"
#include "mem.h"
#include "param.h"
#include "spinlock.h"
#include "timer.h"
#include "wait.h"

struct file;
struct inode;
struct cpu;

/* What swtch saves; the rest is on the stack. */
struct context {
	u64 ra, sp, s0;
};

struct fp_state {
	u64 f[32];
	u64 fcsr;
};

enum proc_state {
	PROC_UNUSED,
	PROC_LIVE,  /* the core knows what it is doing */
	PROC_ENDED, /* exit status waits for the parent */
};

struct proc {
	struct sl_task task; /* first, so that either pointer is the other */

	/* The hart that runs it touches, interrupts off: */
	struct cpu *cpu;	/* where it runs; stale while it does not. Here for this_hart() */
	u32 nr_off;		/* push_off() without pop_off() */
	bool intr_was_on;	/* before the first of them */
	struct context context; /* while it does not run */

	/* It touches itself; fork() and exec() while it cannot run: */
	struct frame *frame; /* its user registers, top of its kernel stack */
	pagetable_t pages;   /* root of its address space */
	u64 size;	     /* bytes of user memory: text to heap */
	struct file *ofile[NOFILE];
	struct inode *cwd;
	bool uses_fp; /* fp holds its registers while it does not run */
	struct fp_state fp;
	void (*start)(void); /* kernel code to begin with; NULL: its frame */
	struct timer timer;  /* of sleep_until(), and of release() before it starts */
	s32 nice;	     /* -20..19 */
	struct lab_proc lab; /* the laboratory's; not inherited */

	/* Any hart may look: */
	bool killed;	    /* to end when it leaves the kernel; atomic */
	bool kill_was_told; /* sleep_on() has returned early for it */
	bool is_held;	    /* forkheld(): not started yet; family_lock */

	/* The lock of its wait queue guards: */
	struct link queue; /* in that queue, if next is not NULL */

	/* family_lock guards: */
	enum proc_state state;
	int exit_status;
	struct proc *parent;
	struct link children; /* that live; and, first ended first, */
	struct link ended;    /* those to be waited for */
	struct link sibling;  /* in one of its parent's two lists */
	struct waitq child_ended;

	/* pid_lock guards: */
	struct proc *hash_next; /* same bucket of pids; or next unused one */
	u64 born_ns;		/* when it got its pid */
	struct link by_age;	/* in the list of all processes */
};

/* A hart. */
struct cpu {
	struct hart;	   /* its members are this structure's */
	bool resched;	   /* sl_schedule() is wanted here; atomic */
	bool in_interrupt; /* and so a wake-up has no waker */
	struct proc *proc; /* that runs here, the idle loop's included */
	struct proc idle;  /* the idle loop: not known to the core */
	struct timers timers;
	u64 next_tick_ns;
} __attribute__((aligned(64)));

extern struct cpu cpus[NCPU];
extern u32 nr_cpus;
extern struct spinlock family_lock;
extern u32 procs_max;

/* The current process, or this hart's idle loop. Always right. */
static inline struct proc *myproc(void)
{
	struct proc *p;

	asm("mv %0, tp" : "=r"(p));
	return p;
}

/* Context: interrupts off. */
static inline struct cpu *mycpu(void)
{
	return myproc()->cpu;
}

static inline struct proc *proc_of(struct sl_task *t)
{
	return (struct proc *)t;
}

static inline s32 pid_of(const struct proc *p)
{
	return p->task.p.pid;
}

/* Of its program; the core and policies see it, too. TASK_COMM_LEN bytes. */
static inline char *name_of(struct proc *p)
{
	return p->task.p.comm;
}

static inline bool killed(const struct proc *p)
{
	return __atomic_load_n(&p->killed, __ATOMIC_RELAXED);
}

/*
 * The process with @pid, not yet waited for, or NULL. Its memory always stays a
 * struct proc, so a stale pointer is harmless but may be of another process.
 */
struct proc *proc_find(s32 pid);

/*
 * Call @each with every process, oldest first, until it returns false.
 * Context: takes pid_lock, which is held during the calls.
 */
void procs_for_each(bool (*each)(struct proc *p, void *arg), void *arg);
u32 nr_procs(void);

/* At boot: room for procs_max processes. The first one, pid 1, runs @start. */
void procs_init(void);
void proc_start_first(void (*start)(void));

/*
 * The kernel side of the calls. kfork(): @is_held: not started before
 * proc_release(). kwait(): addresses of three ints of the user's, 0 for none;
 * the times are in ticks.
 */
int kfork(bool is_held);
_Noreturn void kexit(int status);
int kwait(u64 status_at, u64 wait_at, u64 run_at);
int kkill(s32 pid);
int kexec(const char *path, char **argv); /* argv: kernel memory */
int kgrow(s64 bytes);			  /* sbrk: -1 or 0 */

/* What was set for @p, by enum task_attr_key; 0 where nothing was. */
s64 proc_attr(const struct proc *p, u32 key);

/* Start a held process. Context: family_lock, no lock of the core's. */
void proc_release(struct proc *p);

/* Mark @p, this process or one found under family_lock, killed and wake it up. */
void proc_kill(struct proc *p);

/* The same for process @pid and all that descend from it. Context: no lock. */
void proc_kill_family(s32 pid);

#endif
