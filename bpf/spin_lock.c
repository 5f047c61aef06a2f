/* SPDX-License-Identifier: MIT */
/*
 * spin_lock.c - bpf_spin_lock in a map's values.
 *
 * Read next: maps.c.
 */
#include "core.h"

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

	if (unlikely(here->spin_lock)) {
		refuse_spin_lock(here, lock);
		return;
	}
	while (__atomic_exchange_n(spin_lock_of(lock), 1, __ATOMIC_ACQUIRE)) {
		/* It may be one that a failed callback has not dropped. */
		if (smp_load_acquire(&sl_core.exit_claimed))
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
		WRITE_ONCE(spin_locks[i].is_taken, 0);
	for (u32 i = 0; i < sl_core.nr_cpus; i++)
		sl_core.cpus[i].spin_lock = NULL;
}
