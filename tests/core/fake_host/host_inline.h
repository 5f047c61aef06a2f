/* SPDX-License-Identifier: MIT */
/*
 * host_inline.h - the inline part of the host contract, for the core's tests.
 *
 * CPUs are kernel threads, or one thread that plays several. Everything that
 * the core shares goes through __atomic operations, which ThreadSanitizer
 * understands. A lock knows its owner, and whoever spins for long stops the
 * test: a deadlock is a message, not a test that hangs.
 *
 * Read next: fake_host.h, what tests ask of this host.
 */
#ifndef FAKE_HOST_INLINE_H
#define FAKE_HOST_INLINE_H

#include <scx/types.h>
#include <schedlab/record.h>
#include <schedlab/task.h>

/* The CPU this thread plays. */
extern __thread s32 fake_cpu;
/* Turns this thread has spent waiting for one thing. */
extern __thread u64 fake_spins;

u64 fake_now_ns(void);
void fake_wait_a_turn(void);
void fake_lock_error(const char *what);
void fake_record(u8 kind, s32 task, s32 cpu, u8 flags, u64 arg);
void fake_slice_changed(struct sl_task *t);

typedef struct {
	u32 owner; /* CPU + 1; 0: free */
} sl_lock_t;

/* A test with one thread lets another CPU act here, or NULL. */
extern void (*fake_before_lock)(sl_lock_t *lock);
extern void (*fake_in_wait)(void);

static inline void sl_lock_init(sl_lock_t *lock)
{
	__atomic_store_n(&lock->owner, 0, __ATOMIC_RELAXED);
}

static inline void sl_lock(sl_lock_t *lock)
{
	u32 self = (u32)fake_cpu + 1;
	u32 owner = 0;

	if (fake_before_lock)
		fake_before_lock(lock);
	fake_spins = 0;
	while (!__atomic_compare_exchange_n(&lock->owner, &owner, self, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (owner == self)
			fake_lock_error("a CPU takes a lock that it holds");
		owner = 0;
		fake_wait_a_turn();
	}
}

static inline void sl_unlock(sl_lock_t *lock)
{
	if (__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) != (u32)fake_cpu + 1)
		fake_lock_error("a CPU drops a lock that it does not hold");
	__atomic_store_n(&lock->owner, 0, __ATOMIC_RELEASE);
	fake_spins = 0;
}

static inline u64 sl_host_now_ns(void)
{
	return fake_now_ns();
}

static inline s32 sl_host_cpu(void)
{
	return fake_cpu;
}

static inline void sl_host_relax(void)
{
	fake_wait_a_turn();
}

static inline bool sl_bit_test_and_set(u64 *words, u32 bit)
{
	u64 mask = 1ULL << (bit % 64);

	return __atomic_fetch_or(&words[bit / 64], mask, __ATOMIC_ACQ_REL) & mask;
}

static inline bool sl_bit_test_and_clear(u64 *words, u32 bit)
{
	u64 mask = 1ULL << (bit % 64);

	return __atomic_fetch_and(&words[bit / 64], ~mask, __ATOMIC_ACQ_REL) & mask;
}

static inline bool sl_cas_u64(u64 *at, u64 old, u64 new)
{
	return __atomic_compare_exchange_n(at, &old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static inline void sl_host_record(u8 kind, s32 task, s32 cpu, u8 flags, u64 arg)
{
	fake_record(kind, task, cpu, flags, arg);
}

static inline void sl_host_slice_changed(struct sl_task *t)
{
	fake_slice_changed(t);
}

/* A CPU here is nobody else's: all of its time is the task's. */
static inline u64 sl_host_stolen_ns(struct sl_task *t, u64 ran_ns)
{
	(void)t;
	(void)ran_ns;
	return 0;
}

#endif
