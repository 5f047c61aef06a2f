/* SPDX-License-Identifier: MIT */
/*
 * sched.h - what a host calls while it runs: its CPUs schedule, its tasks come, wake,
 * block and go.
 *
 * Two more headers have what is seldom called: machine.h, the machine and its policy at
 * their beginning and end; change.h, what a task is given, and what of it is changed. A
 * host includes these and host.h, never core/core.h: what it gets is complete, and it
 * writes no member of the core's structures. A task (task.h) is read freely.
 *
 * CPU and time are arguments. @cpu is the one on which the call is made: it is neither
 * preempted nor interrupted meanwhile (see host.h), and holds no lock. @now_ns is a
 * reading of sl_host_now_ns(), not older than the last that this CPU has given.
 *
 * Read next: core/README.md, the life of a task; hosts/sim/sched.c, a caller.
 */
#ifndef SCHEDLAB_SCHED_H
#define SCHEDLAB_SCHED_H

#include <schedlab/change.h>
#include <schedlab/machine.h>

#pragma GCC visibility push(hidden)

/* ---- a CPU --------------------------------------------------------------- */

enum sl_why {
	SL_WHY_RESCHED, /* the tick said so, or a kick */
	SL_WHY_YIELD,
	SL_WHY_BLOCK, /* after sl_task_prepare_block() */
	SL_WHY_EXIT,
	SL_WHY_TAKE_OVER, /* an idle CPU, by one that stands on a task's stack still */
	SL_NR_WHYS
};

struct sl_task *sl_schedule(struct sl_cpu *cpu, enum sl_why why, u64 now_ns);
void sl_switched(struct sl_cpu *cpu, struct sl_task *prev, u64 now_ns);
void sl_task_take_stack(struct sl_task *t);
void sl_task_leave_stack(struct sl_task *t);
bool sl_tick(struct sl_cpu *cpu, u64 now_ns, u64 late_ns);
void sl_timers_run(void);
void sl_stop_at_horizon(struct sl_cpu *cpu, u64 now_ns);

/* ---- a task -------------------------------------------------------------- */

void sl_task_attach(struct sl_task *t, const struct sl_task *parent);
void sl_task_start(struct sl_cpu *cpu, struct sl_task *t, u64 wake_flags, s32 origin_pid);
bool sl_task_wake(struct sl_cpu *cpu, struct sl_task *t, u64 wake_flags, s32 waker_pid);
void sl_task_prepare_block(struct sl_cpu *cpu, struct sl_task *t);
void sl_task_detach(struct sl_task *t);

#pragma GCC visibility pop

#endif
