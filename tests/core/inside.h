/* SPDX-License-Identifier: MIT */
/*
 * inside.h - what the core keeps to itself, for the tests of its parts.
 *
 * Each function calls the one without the prefix, or what calls it; see core/dsq.c, idle.c, policy.c
 * and tasks.c.
 */
#ifndef INSIDE_H
#define INSIDE_H

#include "core.h"

void inside_dsq_init(struct sl_dsq *q, u64 id, s32 cpu);
bool inside_dsq_insert(struct sl_dsq *q, struct sl_task *t, u64 enq_flags);
bool inside_dsq_insert_vtime(struct sl_dsq *q, struct sl_task *t, u64 vtime);
void inside_dsq_remove(struct sl_dsq *q, struct sl_task *t);
struct sl_dsq *inside_find_dsq(struct sl_cpu *this_cpu, u64 id);
void inside_set_idle_tracking(enum sl_idle_tracking tracking);
void inside_update_idle(struct sl_cpu *cpu, bool is_idle, bool is_change);
s32 inside_select_cpu_default(struct sl_task *t, s32 prev_cpu, u64 wake_flags,
			      const struct cpumask *allowed, u64 flags);
void inside_set_bypass(bool is_bypassed);
void inside_watchdog(void);
u64 inside_watchdog_period_ns(void);
void inside_lock_tasks(void);
void inside_unlock_tasks(void);
void fake_migrate_disable(struct sl_task *t);
void fake_migrate_enable(struct sl_task *t);

/* What a host calls, from this CPU, now. */
static inline struct sl_task *here_schedule(enum sl_why why)
{
	return sl_schedule(sl_this_cpu(), why, sl_host_now_ns());
}

static inline void here_switched(struct sl_task *prev)
{
	sl_switched(sl_this_cpu(), prev, sl_host_now_ns());
}

static inline bool here_tick(void)
{
	return sl_tick(sl_this_cpu(), sl_host_now_ns(), 0);
}

static inline void here_start(struct sl_task *t, u64 wake_flags, s32 origin_pid)
{
	sl_task_start(sl_this_cpu(), t, wake_flags, origin_pid);
}

static inline bool here_wake(struct sl_task *t, u64 wake_flags, s32 waker_pid)
{
	return sl_task_wake(sl_this_cpu(), t, wake_flags, waker_pid);
}

static inline void here_prepare_block(struct sl_task *t)
{
	sl_task_prepare_block(sl_this_cpu(), t);
}

#endif
