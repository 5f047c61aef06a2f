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
	t->p.scx.dsq_vtime = vtime;
	return dsq_insert(q, t, SCX_ENQ_DSQ_PRIQ);
}

void inside_dsq_remove(struct sl_dsq *q, struct sl_task *t)
{
	dsq_remove(q, t);
}

struct sl_dsq *inside_find_dsq(struct sl_cpu *this_cpu, u64 id)
{
	return find_dsq(this_cpu, id);
}

void inside_set_idle_tracking(enum sl_idle_tracking tracking)
{
	set_idle_tracking(tracking);
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

/*
 * What Linux's kernel does, and no host here (S20): from now on @t runs on this CPU
 * only, whatever its affinity says. Nests. Context: on the CPU where @t runs.
 */
void fake_migrate_disable(struct sl_task *t)
{
	SL_ASSERT(t->p.migration_disabled < 0xffff);
	WRITE_ONCE(t->p.migration_disabled, (u16)(t->p.migration_disabled + 1));
}

/*
 * The last one ends it: an affinity that was changed meanwhile takes effect.
 * Context: on the CPU where @t runs, no lock held.
 */
void fake_migrate_enable(struct sl_task *t)
{
	struct sl_cpu *this_cpu = sl_this_cpu();

	SL_ASSERT(t->p.migration_disabled > 0);
	/* Under the lock, as a change of the affinity. */
	sl_lock(&this_cpu->lock);
	SL_ASSERT(this_cpu->curr == t);
	WRITE_ONCE(t->p.migration_disabled, (u16)(t->p.migration_disabled - 1));
	if (!sl_may_run_on(t, this_cpu->id))
		sl_host_kick(this_cpu->id);
	sl_unlock(&this_cpu->lock);
}
