/* SPDX-License-Identifier: MIT */
/*
 * host_inline.h - the inline part of the host contract, for kernel threads.
 *
 * With one kernel thread nothing else can be inside the core: a signal handler
 * leaves the core alone while the preemption count is not zero. So locks are
 * empty then, and atomics plain.
 *
 * Read next: host.c, the rest of the contract.
 */
#ifndef UT_HOST_INLINE_H
#define UT_HOST_INLINE_H

#include <scx/types.h>
#include <schedlab/compiler.h>
#include <schedlab/record.h>
#include <schedlab/task.h>

#include "tls.h"

/* More than one kernel thread; constant while any of them is in the core. */
#pragma GCC visibility push(hidden)
extern bool ut_is_smp;
extern bool ut_has_records; /* otherwise sl_host_record() does nothing */

/*
 * A signal takes 5 to 40 us from its tick to the first instruction of the next
 * thread.
 */
extern u64 ut_tick_late_ns; /* constant like ut_is_smp */

typedef struct {
	u32 is_held;
} sl_lock_t;

sl_cold void ut_lock_wait(sl_lock_t *lock);

sl_inline void sl_lock_init(sl_lock_t *lock)
{
	lock->is_held = 0;
}

sl_inline void sl_lock(sl_lock_t *lock)
{
	/*
	 * Not only ACQUIRE: a waker has written what the thread waits for and then,
	 * under this lock, looks at what the thread is doing, and the thread does the
	 * opposite. RISC-V lets a reading pass an earlier writing.
	 */
	if (unlikely(ut_is_smp) && __atomic_exchange_n(&lock->is_held, 1, __ATOMIC_SEQ_CST))
		ut_lock_wait(lock);
}

sl_inline bool sl_trylock(sl_lock_t *lock)
{
	return !ut_is_smp || !__atomic_exchange_n(&lock->is_held, 1, __ATOMIC_SEQ_CST);
}

sl_inline void sl_unlock(sl_lock_t *lock)
{
	if (unlikely(ut_is_smp))
		__atomic_store_n(&lock->is_held, 0, __ATOMIC_RELEASE);
}

/*
 * Time since the start. The counter is the processor's where it runs at a
 * constant rate (clock.c), since asking the kernel's clock costs more than a
 * switch.
 */
struct ut_clock {
	u64 base_cycles;
	u64 ns_per_cycle_q32; /* 32 bits behind the point; 0: ask the kernel */
};
extern struct ut_clock ut_clock;
sl_cold u64 ut_kernel_clock_ns(void);

sl_inline u64 ut_clock_ns(void)
{
	if (unlikely(!ut_clock.ns_per_cycle_q32))
		return ut_kernel_clock_ns();
	return (u64)((unsigned __int128)(ut_cycles() - ut_clock.base_cycles) *
			     ut_clock.ns_per_cycle_q32 >>
		     32);
}

/* What each kernel thread keeps for the inline functions; see struct ut_cpu. */
struct ut_cpu_inline {
	u64 now_ns;		     /* what the clock said last */
	u64 policy_ns;		     /* and the policy's */
	u64 looked_ns;		     /* when it was asked what other processes took; atomic */
	u64 switch_ns;		     /* between two runs, with several kernel threads */
	bool is_held;		     /* and says until the next switch, see ut_thread_exit() */
	bool has_waited;	     /* for another CPU, since the last switch */
	struct sl_record *record_at; /* next free one */
	struct sl_record *record_end;
};

sl_inline u64 sl_host_now_ns(void)
{
	struct ut_cpu_inline *here = ut_tls_cpu();
	u64 now_ns;

	if (unlikely(here->is_held))
		return here->now_ns;
	now_ns = ut_clock_ns();
	/* A counter may be read early by a few ns; here it never goes back. */
	if (now_ns < here->now_ns)
		now_ns = here->now_ns;
	here->now_ns = now_ns;
	return now_ns;
}

/*
 * A policy is shown a machine whose time stands still while other processes have it:
 * what it gives out by the clock is then there to be had, and what it measures is the
 * tasks' doing. There is one such clock for all CPUs, so it stands still for as long as
 * a CPU was taken away on average. What another CPU lost is found after the fact: then
 * the clock waits until it is right, and never goes back.
 */
extern u64 ut_taken_ns; /* per CPU; atomic */

/*
 * A CPU that has not asked for so long may have been taken away: asking the kernel
 * costs 500 ns, and a CPU that another process takes is away for longer.
 */
#define UT_STOLEN_FROM_NS 100000
__noinline void ut_stolen_look(u64 now_ns);

sl_inline u64 ut_policy_time_ns(u64 ns)
{
	struct ut_cpu_inline *here = ut_tls_cpu();
	u64 looked_ns = __atomic_load_n(&here->looked_ns, __ATOMIC_RELAXED);
	u64 policy_ns;

	if (unlikely((s64)(ns - looked_ns) >= UT_STOLEN_FROM_NS))
		ut_stolen_look(ns);
	policy_ns = ns - __atomic_load_n(&ut_taken_ns, __ATOMIC_RELAXED);
	if ((s64)(policy_ns - here->policy_ns) < 0)
		return here->policy_ns;
	here->policy_ns = policy_ns;
	return policy_ns;
}
#define sl_host_policy_time_ns(ns) ut_policy_time_ns(ns)

/* Records bear the time at which the core began, whatever the policy asks. */
sl_inline u64 ut_policy_now_ns(void)
{
	struct ut_cpu_inline *here = ut_tls_cpu();
	u64 now_ns = ut_clock_ns();

	return ut_policy_time_ns(now_ns < here->now_ns ? here->now_ns : now_ns);
}
#define sl_host_policy_now_ns() ut_policy_now_ns()

/*
 * The next task's time begins when the core began to look for it: a second reading
 * of the clock would cost more than the switch. Linux charges likewise. It is read
 * again where the core has waited for another CPU, or has found a task that another CPU
 * has made runnable since.
 */
__noinline void ut_stolen_switch(u64 from_ns, u64 now_ns);

sl_inline u64 ut_switched_ns(const struct sl_task *t)
{
	struct ut_cpu_inline *here = ut_tls_cpu();
	u64 from_ns = here->now_ns;
	u64 now_ns;

	if (likely(!here->has_waited && (s64)(from_ns - t->runnable_at_ns) >= 0))
		return from_ns;
	here->has_waited = false;
	now_ns = sl_host_now_ns();
	here->switch_ns += now_ns - from_ns;
	if (unlikely((s64)(now_ns - __atomic_load_n(&here->looked_ns, __ATOMIC_RELAXED)) >=
		     UT_STOLEN_FROM_NS))
		ut_stolen_switch(from_ns, now_ns);
	return now_ns;
}

sl_inline s32 sl_host_cpu(void)
{
	return ut_tls_cpu_idx();
}
#define sl_host_core_cpu() ((struct sl_cpu *)ut_tls_core_cpu())

void ut_prefetch_task(const struct sl_task *t);
#define sl_host_prefetch(at) ut_prefetch(at)
#define sl_host_prefetch_task(t)					\
	do {								\
		if (unlikely(ut_is_smp))				\
			ut_prefetch_task(t);				\
	} while (0)

void ut_relax(void);
void ut_wait_turn(void);

sl_inline void sl_host_relax(void)
{
	ut_relax();
}

sl_inline bool sl_bit_test_and_set(u64 *words, u32 bit)
{
	u64 mask = 1ULL << (bit % 64);
	u64 *word = &words[bit / 64];
	u64 was;

	if (ut_is_smp)
		return __atomic_fetch_or(word, mask, __ATOMIC_SEQ_CST) & mask;
	was = *word;
	*word = was | mask;
	return was & mask;
}

sl_inline bool sl_bit_test_and_clear(u64 *words, u32 bit)
{
	u64 mask = 1ULL << (bit % 64);
	u64 *word = &words[bit / 64];
	u64 was;

	/* Most often it is clear, and asking is cheaper than taking. */
	if (!(__atomic_load_n(word, __ATOMIC_SEQ_CST) & mask))
		return false;
	if (ut_is_smp)
		return __atomic_fetch_and(word, ~mask, __ATOMIC_SEQ_CST) & mask;
	was = *word;
	*word = was & ~mask;
	return was & mask;
}

sl_inline bool sl_cas_u64(u64 *at, u64 old, u64 new)
{
	if (unlikely(ut_is_smp))
		return __atomic_compare_exchange_n(at, &old, new, false, __ATOMIC_SEQ_CST,
						   __ATOMIC_SEQ_CST);
	if (*at != old)
		return false;
	*at = new;
	return true;
}

/* Return: what is there now. Not for what a signal handler changes. */
sl_inline u32 ut_add(u32 *at, u32 change)
{
	if (unlikely(ut_is_smp))
		return __atomic_add_fetch(at, change, __ATOMIC_SEQ_CST);
	return *at += change;
}

/*
 * gcc warns of each fence that its ThreadSanitizer takes no note of it. Neither does
 * clang's, and nothing depends on that: what a fence orders is atomic.
 */
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

/* With one kernel thread there is no other CPU to be in order with. */
#define sl_host_fence()							\
	do {								\
		if (ut_is_smp)						\
			__atomic_thread_fence(__ATOMIC_SEQ_CST);	\
	} while (0)

__noinline void ut_record(u8 kind, s32 task, s32 cpu, u8 flags, u64 arg);

sl_inline void sl_host_record(u8 kind, s32 task, s32 cpu, u8 flags, u64 arg)
{
	if (unlikely(ut_has_records))
		ut_record(kind, task, cpu, flags, arg);
}

/* The timer was set for the slice that the task had; it must be set anew. */
__noinline void ut_slice_changed(struct sl_task *t);

sl_inline void sl_host_slice_changed(struct sl_task *t)
{
	ut_slice_changed(t);
}

/* Shorter runs are not looked at. */
__noinline u64 ut_stolen_ns(struct sl_task *t, u64 ran_ns);

sl_inline u64 sl_host_stolen_ns(struct sl_task *t, u64 ran_ns)
{
	if (likely(ran_ns < UT_STOLEN_FROM_NS))
		return 0;
	return ut_stolen_ns(t, ran_ns);
}
#pragma GCC visibility pop

#endif
