/* SPDX-License-Identifier: MIT */
/*
 * host_inline.h - the inline part of the host contract, for the teaching kernel.
 *
 * Locks are spin locks and nothing else: the core runs with interrupts off, so
 * nothing on this hart can want a lock that this hart holds (a build with
 * CHECKS_LOCKS traps where they are on). The clock is the board's, records are the
 * laboratory's (lab.h).
 *
 * Read next: host.c, the rest of the contract.
 */
#ifndef KERNEL_HOST_INLINE_H
#define KERNEL_HOST_INLINE_H

#include <scx/types.h>
#include <schedlab/compiler.h>
#include <schedlab/task.h>

#include "riscv.h"

typedef struct {
	u32 locked;
} sl_lock_t;

sl_inline void sl_lock_init(sl_lock_t *lock)
{
	lock->locked = 0;
}

sl_inline void sl_host_relax(void)
{
	extern bool has_panicked;
	extern void park(void);

	/*
	 * An emulator that runs the harts in turns would let this one wait to
	 * the end of its turn. wfi ends it, and the interrupt that this
	 * hart sends itself first keeps wfi from waiting for another one.
	 */
	asm volatile("csrsi sip, 2\n\twfi" : : : "memory");
	if (__builtin_expect(__atomic_load_n(&has_panicked, __ATOMIC_RELAXED), 0))
		park();
}

sl_inline void sl_lock(sl_lock_t *lock)
{
#ifdef CHECKS_LOCKS
	if (csr_read(sstatus) & SSTATUS_SIE)
		__builtin_trap();
#endif
	while (__builtin_expect(__atomic_exchange_n(&lock->locked, 1, __ATOMIC_ACQUIRE), 0)) {
		while (__atomic_load_n(&lock->locked, __ATOMIC_RELAXED))
			sl_host_relax();
	}
}

sl_inline void sl_unlock(sl_lock_t *lock)
{
	__atomic_store_n(&lock->locked, 0, __ATOMIC_RELEASE);
}

/* The beginning of struct cpu (proc.h): what the core's functions need in line. */
struct hart {
	u32 idx;	     /* number of the hart: the core's of the CPU, and SBI's id */
	struct sl_cpu *core; /* the core's side of it */

	/* The laboratory's: */
	u64 clock_held_ns;	      /* where its clock stands; 0: it runs. See clock.h */
	struct sl_record *record_at;  /* where the next record goes; see record.h */
	struct sl_record *record_end; /* == record_at: no room */
};

/*
 * The hart that runs this. Its address stands right behind the task of the running
 * process (struct proc), which tp points to; proc.c asserts it.
 */
sl_inline struct hart *this_hart(void)
{
	struct hart *hart;

	asm volatile("ld %0, %1(tp)" : "=r"(hart) : "i"(sizeof(struct sl_task)));
	return hart;
}

sl_inline s32 sl_host_cpu(void)
{
	return (s32)this_hart()->idx;
}

#define sl_host_core_cpu() (this_hart()->core)

/* Nanoseconds in one step of the board's clock, from the FDT. */
extern u64 clock_step_ns;

sl_inline u64 clock_running_ns(void)
{
	return r_time() * clock_step_ns;
}

#include "lab.h" /* here, because it needs what stands above */

sl_inline u64 sl_host_now_ns(void)
{
	return lab_clock_ns();
}

sl_inline void sl_host_record(u8 kind, s32 task, s32 cpu, u8 flags, u64 arg)
{
	lab_record(kind, task, cpu, flags, arg);
}

sl_inline bool sl_bit_test_and_set(u64 *words, u32 bit)
{
	u64 mask = 1ULL << (bit % 64);

	return __atomic_fetch_or(&words[bit / 64], mask, __ATOMIC_ACQ_REL) & mask;
}

sl_inline bool sl_bit_test_and_clear(u64 *words, u32 bit)
{
	u64 mask = 1ULL << (bit % 64);

	return __atomic_fetch_and(&words[bit / 64], ~mask, __ATOMIC_ACQ_REL) & mask;
}

sl_inline bool sl_cas_u64(u64 *at, u64 old, u64 new)
{
	return __atomic_compare_exchange_n(at, &old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* The next tick will see it. */
sl_inline void sl_host_slice_changed(struct sl_task *t)
{
	(void)t;
}

/* CPUs are not shared here: all of a CPU's time is the task's. */
sl_inline u64 sl_host_stolen_ns(struct sl_task *t, u64 ran_ns)
{
	(void)t;
	(void)ran_ns;
	return 0;
}

#endif
