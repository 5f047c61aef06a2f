/* SPDX-License-Identifier: MIT */
/*
 * inside.c - the core as the tests link it: with doors to what is static there.
 *
 * Read next: inside.h.
 */
#include "../../core/build.c"

#include "inside.h"

void inside_dsq_init(struct sl_dsq *q, u64 id, s32 cpu)
{
	dsq_init(q, id, cpu);
}

bool inside_dsq_insert(struct sl_dsq *q, struct sl_task *t, u64 enq_flags)
{
	return dsq_insert(q, t, enq_flags);
}

bool inside_dsq_insert_vtime(struct sl_dsq *q, struct sl_task *t, u64 vtime)
{
	return dsq_insert_vtime(q, t, vtime);
}

void inside_dsq_remove(struct sl_dsq *q, struct sl_task *t)
{
	dsq_remove(q, t);
}

struct sl_dsq *inside_find_dsq(struct sl_cpu *this_cpu, u64 id)
{
	return find_dsq(this_cpu, id);
}

void inside_update_idle(struct sl_cpu *cpu, bool is_idle, bool is_change)
{
	update_idle(cpu, is_idle, is_change);
}

s32 inside_select_cpu_default(struct sl_task *t, s32 prev_cpu, u64 wake_flags,
			      const struct cpumask *allowed, u64 flags)
{
	return select_cpu_default(t, prev_cpu, wake_flags, allowed, flags);
}

void inside_set_bypass(bool is_bypassed)
{
	set_bypass(is_bypassed);
}

void inside_watchdog(void)
{
	watchdog(sl_this_cpu());
}

u64 inside_watchdog_period_ns(void)
{
	return timeout_ns() / 2;
}

void inside_lock_tasks(void)
{
	lock_tasks();
}

void inside_unlock_tasks(void)
{
	unlock_tasks();
}
