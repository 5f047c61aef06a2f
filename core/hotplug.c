/* SPDX-License-Identifier: MIT */
/*
 * hotplug.c - a CPU goes offline, and comes back (S47).
 *
 *	taken as by a higher class -> its tasks are enqueued elsewhere -> ops.cpu_offline
 *	-> offline -> ops.cpu_online -> given back
 *
 * No task is put on a CPU whose `is_offline` is set: the flag is written and read under
 * the CPU's lock, so where a waker has chosen the CPU before, it finds that out when it
 * has the lock (lock_online()). Functions have the names of their counterparts in
 * kernel/sched/ext.c.
 *
 * Called by hosts. Read next: dump.c.
 */
#include "core.h"

static void handle_hotplug(struct sl_cpu *cpu, bool is_online)
{
	sl_core.hotplug_seq++;
	if (sl_is_bypassed())
		return;
	if (is_online && SL_HAS_OP(cpu_online))
		SL_CALL(cpu, SL_OP(cpu_online), cpu_online, NULL, cpu->id);
	else if (!is_online && SL_HAS_OP(cpu_offline))
		SL_CALL(cpu, SL_OP(cpu_offline), cpu_offline, NULL, cpu->id);
	else
		exit_by_kernel(SCX_ECODE_ACT_RESTART | SCX_ECODE_RSN_HOTPLUG,
			       "cpu %d going %s, exiting scheduler", cpu->id,
			       is_online ? "online" : "offline");
}

static void set_online(struct sl_cpu *cpu, bool is_online)
{
	u64 *online = (u64 *)sl_core.online.bits;

	if (is_online)
		sl_bit_test_and_set(online, (u32)cpu->id);
	else
		sl_bit_test_and_clear(online, (u32)cpu->id);
}

/* Of those in the local queue Linux calls neither quiescent nor runnable. */
static void push_local(struct sl_cpu *cpu)
{
	struct sl_task *t;

	do {
		sl_lock(&cpu->lock);
		t = cpu->local.first;
		if (t) {
			dsq_remove(&cpu->local, t);
			smp_store_release(&t->state, SL_TASK_WAKING);
			defer_migration(cpu, t);
		}
		sl_unlock(&cpu->lock);
		flush(cpu);
	} while (t);
}

/**
 * sl_cpu_offline - @cpu is no CPU for tasks from now on
 * @cpu: this CPU, on which no higher class is
 * @now_ns: the running task, if there is one, is charged until then
 *
 * Does what sl_cpu_take() does; no sl_schedule() comes until sl_cpu_online(). Another
 * CPU must stay online.
 *
 * Context: on the CPU concerned, no lock held.
 * Return: false, and nothing is done: a task whose migration is disabled is on it.
 */
bool sl_cpu_offline(struct sl_cpu *cpu, u64 now_ns)
{
	struct sl_task *t;

	for_each_task(t) {
		if (READ_ONCE(t->p.migration_disabled) && READ_ONCE(t->cpu) == cpu->id)
			return false;
	}
	sl_cpu_take(cpu, now_ns);
	sl_lock(&cpu->lock);
	cpu->is_offline = true;
	WRITE_ONCE(cpu->offline_since_ns, now_ns);
	sl_unlock(&cpu->lock);
	push_local(cpu);
	timers_unpin(cpu);
	for_each_task(t) {
		if (READ_ONCE(t->cpu) == cpu->id && smp_load_acquire(&t->state) == SL_TASK_RUNNABLE)
			end_change(t, begin_change(t));
	}
	handle_hotplug(cpu, false);
	update_cpusets();
	sl_lock(&cpu->lock);
	/* As on Linux: until the bit is claimed, which is once. */
	update_idle(cpu, true, true);
	set_online(cpu, false);
	sl_unlock(&cpu->lock);
	flush(cpu);
	return true;
}

/* Tasks may be put on @cpu again. Context: on that CPU, no lock held. */
void sl_cpu_online(struct sl_cpu *cpu)
{
	sl_lock(&cpu->lock);
	set_online(cpu, true);
	update_idle(cpu, false, true);
	cpu->is_offline = false;
	WRITE_ONCE(cpu->offline_ns, cpu->offline_ns + sl_host_now_ns() - cpu->offline_since_ns);
	sl_unlock(&cpu->lock);
	update_cpusets();
	handle_hotplug(cpu, true);
	flush(cpu);
	sl_cpu_give_back(cpu);
}
