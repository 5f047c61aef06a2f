/* SPDX-License-Identifier: MIT */
/*
 * spin_lock.c - the locks of a policy: bpf_spin_lock, bpf_res_spin_lock, arena_spin_lock.
 *
 * Read next: objects.c.
 */
#include "../core/core.h"

/*
 * S32: the lock is not where the policy put it, so that an update of the map value
 * around it cannot open it. Several may share one here: a policy holds one at a
 * time, and calls nothing while it does, as Linux's verifier demands.
 */
#define NR_SPIN_LOCKS 64
static struct {
	u32 holder; /* CPU + 1; 0: free */
} __attribute__((aligned(64))) spin_locks[NR_SPIN_LOCKS];

static u32 *spin_lock_of(const struct bpf_spin_lock *lock)
{
	u64 at = (u64)(uintptr_t)lock;

	return &spin_locks[(at * 0x9e3779b97f4a7c15ULL) >> 58].holder;
}

/* Is the holder @this_cpu itself, or does it wait for a lock of this CPU? As rqspinlock does. */
static bool is_deadlock(const struct sl_cpu *this_cpu, const u32 *holder)
{
	u32 self = (u32)this_cpu->id + 1;
	u32 other = READ_ONCE(*holder);
	const u32 *wanted;

	if (!other || other > sl_core.nr_cpus)
		return false;
	if (other == self)
		return true;
	wanted = smp_load_acquire(&sl_core.cpus[other - 1].wanted_lock);
	return wanted && READ_ONCE(*wanted) == self && READ_ONCE(*holder) == other;
}

/*
 * Return: 0; -EDEADLK; -ETIMEDOUT: the policy has failed, and perhaps in a callback that
 * has not dropped the lock.
 */
static int take_lock(u32 *holder, const void *lock, const void *caller)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	int err = sl_host_policy_lock(holder, lock, caller) ? -EDEADLK : 0;
	u32 free = 0;

	while (!err && !__atomic_compare_exchange_n(holder, &free, (u32)this_cpu->id + 1, false,
						    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		free = 0;
		smp_store_release(&this_cpu->wanted_lock, holder);
		if (is_deadlock(this_cpu, holder))
			err = -EDEADLK;
		else if (smp_load_acquire(&sl_core.exit_claimed))
			err = -ETIMEDOUT;
		else
			sl_host_relax();
	}
	WRITE_ONCE(this_cpu->wanted_lock, NULL);
	return err;
}

static void drop_lock(u32 *holder)
{
	__atomic_store_n(holder, 0, __ATOMIC_RELEASE);
	sl_host_policy_unlock(holder);
}

int bpf_res_spin_lock(struct bpf_res_spin_lock *lock)
{
	return take_lock(&lock->val, lock, __builtin_return_address(0));
}

void bpf_res_spin_unlock(struct bpf_res_spin_lock *lock)
{
	drop_lock(&lock->val);
}

/* Linux finds no deadlock of these: the wait takes too long. */
int sl_arena_spin_lock(u32 *holder)
{
	return take_lock(holder, holder, __builtin_return_address(0)) ? -ETIMEDOUT : 0;
}

void sl_arena_spin_unlock(u32 *holder)
{
	drop_lock(holder);
}

/* S32: it would wait for itself. */
static sl_cold void refuse_spin_lock(const struct sl_cpu *this_cpu, const struct bpf_spin_lock *lock)
{
	const struct sl_task *t = this_cpu->callback_task;
	const char *name = sl_callback_name(this_cpu->callback) ?: "?";
	const char *holder = sl_callback_name(this_cpu->spin_lock_taken_in) ?: "?";

	if (lock == this_cpu->spin_lock)
		scx_error(t,
			  "ops.%s() takes a bpf_spin_lock that ops.%s() has taken and not dropped, in %s",
			  name, holder, map_name_of_value(lock));
	else
		scx_error(t,
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
	if (take_lock(spin_lock_of(lock), lock, __builtin_return_address(0)))
		return;
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
	drop_lock(spin_lock_of(lock));
}

/* A policy that goes leaves none locked. */
static void spin_locks_reset(void)
{
	for (u32 i = 0; i < NR_SPIN_LOCKS; i++)
		WRITE_ONCE(spin_locks[i].holder, 0);
	for_each_cpu(cpu)
		cpu->spin_lock = NULL;
}
