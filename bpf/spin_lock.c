/* SPDX-License-Identifier: MIT */
/*
 * spin_lock.c - bpf_spin_lock in a map's values.
 *
 * Read next: maps.c.
 */
#include "../core/core.h"

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
static sl_cold void refuse_spin_lock(const struct sl_cpu *this_cpu,
				     const struct bpf_spin_lock *lock)
{
	const struct sl_task *t = this_cpu->callback_task;
	const char *name = sl_callback_name(this_cpu->callback) ?: "?";
	const char *holder = sl_callback_name(this_cpu->spin_lock_taken_in) ?: "?";

	if (lock == this_cpu->spin_lock)
		sl_policy_error(SCX_EXIT_ERROR, t ? t->p.pid : 0,
				"ops.%s() takes a bpf_spin_lock that ops.%s() has taken and not dropped, in %s",
				name, holder, map_name_of_value(lock));
	else
		sl_policy_error(SCX_EXIT_ERROR, t ? t->p.pid : 0,
				"ops.%s() takes a second bpf_spin_lock, in %s, while ops.%s() has one, in %s",
				name, map_name_of_value(lock), holder,
				map_name_of_value(this_cpu->spin_lock));
}

void bpf_spin_lock(struct bpf_spin_lock *lock)
{
	struct sl_cpu *this_cpu = sl_this_cpu();

	if (unlikely(this_cpu->spin_lock)) {
		refuse_spin_lock(this_cpu, lock);
		return;
	}
	while (__atomic_exchange_n(spin_lock_of(lock), 1, __ATOMIC_ACQUIRE)) {
		/* It may be one that a failed callback has not dropped. */
		if (smp_load_acquire(&sl_core.exit_claimed))
			return;
		sl_host_relax();
	}
	this_cpu->spin_lock = lock;
	this_cpu->spin_lock_taken_in = this_cpu->callback;
}

void bpf_spin_unlock(struct bpf_spin_lock *lock)
{
	struct sl_cpu *this_cpu = sl_this_cpu();

	/* Of one that was refused there is nothing to unlock. */
	if (lock != this_cpu->spin_lock)
		return;
	this_cpu->spin_lock = NULL;
	__atomic_store_n(spin_lock_of(lock), 0, __ATOMIC_RELEASE);
}

/* A policy that goes leaves none locked. */
static void spin_locks_reset(void)
{
	for (u32 i = 0; i < NR_SPIN_LOCKS; i++)
		WRITE_ONCE(spin_locks[i].is_taken, 0);
	for (u32 i = 0; i < sl_core.nr_cpus; i++)
		sl_core.cpus[i].spin_lock = NULL;
}
