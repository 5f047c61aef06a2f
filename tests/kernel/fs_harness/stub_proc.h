/* SPDX-License-Identifier: MIT */
/*
 * stub_proc.h - stands in for the kernel's proc.h and timer.h, which read registers
 * of a RISC-V hart, so that its file system runs as an ordinary program. Included
 * before everything else by the compiler's -include; the guards below keep the
 * real ones out.
 *
 * Read next: harness.h.
 */
#ifndef KERNEL_PROC_H
#define KERNEL_PROC_H
#define KERNEL_TIMER_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>

#include "../../../hosts/kernel/kernel/mem.h"
#include "../../../hosts/kernel/kernel/param.h"
#include "../../../hosts/kernel/kernel/spinlock.h"
#include "../../../hosts/kernel/kernel/wait.h"

struct file;
struct inode;
struct timer;

typedef void (*timer_fn)(struct timer *timer, void *arg);

struct timer {
	u64 at_ns;
	timer_fn fn;
	void *arg;
};

u64 now_ns(void);
void timer_start(struct timer *timer, u64 at_ns, timer_fn fn, void *arg);

struct frame {
	uint64 a0, a1, a2, a3, a4, a5;
};

struct proc {
	struct frame *frame;
	struct frame registers;
	struct file *ofile[NOFILE];
	struct inode *cwd;
	bool killed;
	struct link queue;
	bool is_woken;
	sem_t wake;   /* with threads only */
	int nr_locks; /* spin locks it holds */
};

extern __thread struct proc *current;

static inline struct proc *myproc(void)
{
	return current;
}

static inline bool killed(const struct proc *p)
{
	return __atomic_load_n(&p->killed, __ATOMIC_RELAXED);
}

#endif
