/* SPDX-License-Identifier: MIT */
/*
 * kfuncs_cpu.c - what a policy calls about CPUs, tasks, masks, time and locks.
 *
 * Thin wrappers with Linux's names; include/scx/native.h lists them. Those that
 * need more than a few lines are in idle.c and kfuncs_dsq.c.
 *
 * Read next: docs/semantics.md.
 */
#include "core.h"

#define BPF_MAX_LOOPS (8U << 20)

long sl_bpf_loop(u32 nr_loops, long (*callback)(u64 i, void *ctx), void *ctx,
		 u64 flags)
{
	if (flags)
		return -22;
	if (nr_loops > BPF_MAX_LOOPS)
		return -7;
	for (u32 i = 0; i < nr_loops; i++) {
		if (callback(i, ctx))
			return i + 1;
	}
	return nr_loops;
}

/*
 * S32: the lock is not where the policy put it, so that an update of the map value
 * around it cannot open it. Several may share one here: a policy holds one at a
 * time, and calls nothing while it does, as Linux's verifier demands.
 */
#define NR_SPIN_LOCKS 64
static struct {
	u32 is_taken;
} __attribute__((aligned(64))) spin_locks[NR_SPIN_LOCKS];

static u32 *spin_lock_of(const struct bpf_spin_lock *lock)
{
	u64 at = (u64)(uintptr_t)lock;

	return &spin_locks[(at * 0x9e3779b97f4a7c15ULL) >> 58].is_taken;
}

/* S32: it would wait for itself. */
static sl_cold void refuse_spin_lock(const struct sl_cpu *here,
				     const struct bpf_spin_lock *lock)
{
	const struct sl_task *t = here->callback_task;
	const char *name = sl_callback_name(here->callback) ?: "?";
	const char *holder = sl_callback_name(here->spin_lock_taken_in) ?: "?";

	if (lock == here->spin_lock)
		sl_policy_error(SCX_EXIT_ERROR, t ? t->p.pid : 0,
				"ops.%s() takes a bpf_spin_lock that ops.%s() has taken and not dropped, in %s",
				name, holder, sl_map_name_of_value(lock));
	else
		sl_policy_error(SCX_EXIT_ERROR, t ? t->p.pid : 0,
				"ops.%s() takes a second bpf_spin_lock, in %s, while ops.%s() has one, in %s",
				name, sl_map_name_of_value(lock), holder,
				sl_map_name_of_value(here->spin_lock));
}

void bpf_spin_lock(struct bpf_spin_lock *lock)
{
	struct sl_cpu *here = sl_this_cpu();

	if (sl_unlikely(here->spin_lock)) {
		refuse_spin_lock(here, lock);
		return;
	}
	while (__atomic_exchange_n(spin_lock_of(lock), 1, __ATOMIC_ACQUIRE)) {
		/* It may be one that a failed callback has not dropped. */
		if (sl_load(&sl_core.exit_claimed))
			return;
		sl_host_relax();
	}
	here->spin_lock = lock;
	here->spin_lock_taken_in = here->callback;
}

void bpf_spin_unlock(struct bpf_spin_lock *lock)
{
	struct sl_cpu *here = sl_this_cpu();

	/* Of one that was refused there is nothing to unlock. */
	if (lock != here->spin_lock)
		return;
	here->spin_lock = NULL;
	__atomic_store_n(spin_lock_of(lock), 0, __ATOMIC_RELEASE);
}

/* A policy that goes leaves none locked. */
void sl_spin_locks_reset(void)
{
	for (u32 i = 0; i < NR_SPIN_LOCKS; i++)
		sl_poke(&spin_locks[i].is_taken, 0);
	for (u32 i = 0; i < sl_core.nr_cpus; i++)
		sl_core.cpus[i].spin_lock = NULL;
}

u32 bpf_get_prandom_u32(void)
{
	return sl_host_random();
}

u64 bpf_ktime_get_ns(void)
{
	return sl_host_policy_now_ns();
}

u64 scx_bpf_now(void)
{
	return sl_host_policy_now_ns();
}

u32 bpf_get_smp_processor_id(void)
{
	return (u32)sl_host_cpu();
}

/* ---- tasks ------------------------------------------------------------- */

/* S39: never NULL; an idle CPU has its idle task, as on Linux. */
struct task_struct *bpf_get_current_task_btf(void)
{
	struct sl_cpu *here = sl_this_cpu();

	return here->curr ? &here->curr->p : &here->idle.p;
}

bool bpf_in_task(void)
{
	return !sl_this_cpu()->in_interrupt;
}

struct task_struct *bpf_task_from_pid(s32 pid)
{
	struct sl_task *t = sl_host_task(pid);

	return t ? &t->p : NULL;
}

/* A task's memory outlives the policy (task.h): no count is needed. */
struct task_struct *bpf_task_acquire(struct task_struct *p)
{
	return p;
}

void bpf_task_release(struct task_struct *p)
{
	(void)p;
}

/* As on Linux until the CPU has switched: also in ops.enqueue() of a preempted task. */
bool scx_bpf_task_running(const struct task_struct *p)
{
	const struct sl_task *t = sl_task_of(p);

	return sl_peek(&sl_core.cpus[sl_peek(&t->cpu)].curr) == t;
}

s32 scx_bpf_task_cpu(const struct task_struct *p)
{
	return sl_peek(&sl_task_of(p)->cpu);
}

bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice)
{
	struct sl_task *t = sl_task_of(p);

	sl_set_slice(t, slice);
	if (sl_peek(&t->state) == SL_TASK_RUNNING)
		sl_host_slice_changed(t);
	return true;
}

bool scx_bpf_task_set_dsq_vtime(struct task_struct *p, u64 vtime)
{
	sl_poke(&p->scx.dsq_vtime, vtime);
	return true;
}

/* ---- CPUs -------------------------------------------------------------- */

u32 scx_bpf_nr_cpu_ids(void)
{
	return sl_core.nr_cpus;
}

u32 scx_bpf_nr_node_ids(void)
{
	return sl_core.nr_nodes;
}

s32 scx_bpf_cpu_node(s32 cpu)
{
	return (u32)cpu < sl_core.nr_cpus ? sl_core.node[cpu] : -1;
}

const struct cpumask *scx_bpf_get_possible_cpumask(void)
{
	return &sl_core.possible;
}

const struct cpumask *scx_bpf_get_online_cpumask(void)
{
	return &sl_core.possible;
}

const struct cpumask *scx_bpf_get_idle_cpumask(void)
{
	return &sl_core.idle;
}

const struct cpumask *scx_bpf_get_idle_smtmask(void)
{
	return sl_core.has_smt ? &sl_core.idle_smt : &sl_core.idle;
}

void scx_bpf_put_cpumask(const struct cpumask *mask)
{
	(void)mask;
}

void scx_bpf_put_idle_cpumask(const struct cpumask *mask)
{
	(void)mask;
}

/* No host here changes clock speeds: full capacity, always. */
u32 scx_bpf_cpuperf_cap(s32 cpu)
{
	(void)cpu;
	return SCX_CPUPERF_ONE;
}

u32 scx_bpf_cpuperf_cur(s32 cpu)
{
	(void)cpu;
	return SCX_CPUPERF_ONE;
}

void scx_bpf_cpuperf_set(s32 cpu, u32 perf)
{
	(void)cpu;
	(void)perf;
}
