/* SPDX-License-Identifier: MIT */
/*
 * sched.h - the only way to the core's choice of what runs next.
 *
 *	push_off -> sl_schedule(why) -> swtch() to the chosen one's kernel stack
 *	         -> there: sl_switched(the one before) -> its own pop_off
 *
 * No scheduler thread stands between two processes. A hart with nothing to run
 * is on the stack of its idle loop.
 *
 * Read next: sched.c, then core/schedule.c.
 */
#ifndef KERNEL_SCHED_H
#define KERNEL_SCHED_H

#include <schedlab/sched.h>

#include "proc.h"

/*
 * A process announces to the core that it will block before a waker can see it
 * waiting; a wake-up in between keeps it awake. @what: it waits for, as ps shows it.
 */
void sched_prepare_block(struct proc *p, const char *what);

/* Hand @p to the core. @flags: SCX_WAKE_*. Context: any, interrupts off. */
void sched_wake(struct proc *p, u64 flags);

/*
 * The tick. In line: with several harts the emulator's turns depend on each instruction.
 * Context: interrupts off. Return: whether the hart has to schedule.
 */
sl_inline bool sched_tick(void)
{
	return sl_tick(mycpu()->core, sl_host_now_ns(), 0);
}

/* @p, which was made, begins. Context: family_lock held. */
void sched_start(struct proc *p);

/*
 * Leave the hart to the process that the core chooses. SL_WHY_BLOCK: after
 * sched_prepare_block(); SL_WHY_RESCHED: it was asked for, see mycpu()->resched.
 * Context: interrupts off, and exactly one push_off().
 */
void schedule(enum sl_why why);
_Noreturn void sched_exit(void);

/* The same in a trap, where interrupts are off and @p, the current process, holds nothing. */
static inline void preempt(struct proc *p)
{
	p->nr_off = 1;
	schedule(SL_WHY_RESCHED);
	p->nr_off = 0;
}

/* The idle loop of this hart; boot ends here. */
_Noreturn void idle_loop(void);

/* The first C code of a new process, from proc_begin. Return: its user frame. */
struct frame *sched_begin(struct proc *prev);

/* Go on in @fn, at the beginning of another stack. */
_Noreturn void call_on_stack(void *sp, void (*fn)(void));

/* The floating-point registers of this hart. Interrupts are off. */
void fp_save(struct fp_state *fp);
void fp_restore(const struct fp_state *fp);

/* host.c, for sched_init(): random numbers from the boot argument `seed`. */
void host_init(void);

/* sched.c, for main.c: the core without a policy. */
void sched_init(void);

#endif
