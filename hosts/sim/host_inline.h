/* SPDX-License-Identifier: MIT */
/*
 * host_inline.h - the inline part of the host contract, for the simulator.
 *
 * One thread plays all CPUs, so locks are empty and atomics are plain. The
 * clock is virtual: hosts/sim/loop.c moves it from event to event.
 *
 * Read next: host.c, the rest of the contract.
 */
#ifndef SIM_HOST_INLINE_H
#define SIM_HOST_INLINE_H

#include <scx/types.h>
#include <schedlab/compiler.h>

/*
 * No other thread looks: what is shared elsewhere the compiler may keep in registers,
 * and an addition in memory is one instruction (60 of a switch's 1,100).
 */
#undef READ_ONCE
#undef WRITE_ONCE
#undef smp_load_acquire
#undef smp_store_release
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, val) ((x) = (val))
#define smp_load_acquire(at) (*(at))
#define smp_store_release(at, value) (*(at) = (value))

#include <schedlab/record.h>
#include <schedlab/task.h>

typedef struct { } sl_lock_t;

sl_inline void sl_lock_init(sl_lock_t *lock)
{
	(void)lock;
}

sl_inline void sl_lock(sl_lock_t *lock)
{
	(void)lock;
}

sl_inline void sl_unlock(sl_lock_t *lock)
{
	(void)lock;
}

extern u64 sim_now_ns;
extern s32 sim_cpu_idx;		/* the CPU on which something happens now, */
extern struct sl_cpu *sim_core_cpu;	/* and what the core has of it */
#define sl_host_core_cpu() sim_core_cpu

sl_inline u64 sl_host_now_ns(void)
{
	return sim_now_ns;
}

sl_inline s32 sl_host_cpu(void)
{
	return sim_cpu_idx;
}

/* A task is data, and a CPU is off it as soon as it says so. */
#define SL_HOST_HAS_STACKS 0

void sim_wait_for_kick(s32 cpu);
#define sl_host_wait_for(cpu) sim_wait_for_kick(cpu)

/* No other thread can end a wait here: to wait at all would be to hang. */
_Noreturn void sim_hang(void);

sl_inline void sl_host_relax(void)
{
	sim_hang();
}

sl_inline bool sl_bit_test_and_set(u64 *words, u32 bit)
{
	u64 mask = 1ULL << (bit % 64);
	bool was = words[bit / 64] & mask;

	words[bit / 64] |= mask;
	return was;
}

sl_inline bool sl_bit_test_and_clear(u64 *words, u32 bit)
{
	u64 mask = 1ULL << (bit % 64);
	bool was = words[bit / 64] & mask;

	words[bit / 64] &= ~mask;
	return was;
}

sl_inline bool sl_cas_u64(u64 *at, u64 old, u64 new)
{
	if (*at != old)
		return false;
	*at = new;
	return true;
}

#define sl_host_fence() ((void)0)

/* So many tasks are in a near cache; of a longer queue those next are fetched. */
#define SIM_NEAR_TASKS 1000
void sim_prefetch(const struct sl_task *first);
#define sl_host_prefetch_queue(first, nr)				\
	do {								\
		if (unlikely((nr) > SIM_NEAR_TASKS))			\
			sim_prefetch(first);				\
	} while (0)

/* Where the next record goes; both NULL when records are off. */
extern struct sl_record *sim_record_at;
extern struct sl_record *sim_record_end;
void sim_records_flush(void);

sl_inline void sl_host_record(u8 kind, s32 task, s32 cpu, u8 flags, u64 arg)
{
	struct sl_record *r = sim_record_at;

	if (!r)
		return;
	*r = (struct sl_record){
		.t_ns = sim_now_ns,
		.task = (u32)task,
		.cpu = (u16)cpu,
		.kind = kind,
		.flags = flags,
		.arg = arg,
	};
	sim_record_at = r + 1;
	if (sim_record_at == sim_record_end)
		sim_records_flush();
}

/* The simulator skips ticks that change nothing, so it must hear of slices. */
void sim_slice_changed(struct sl_task *t);

sl_inline void sl_host_slice_changed(struct sl_task *t)
{
	sim_slice_changed(t);
}

/* No other process has a CPU here: all of its time is the task's. */
sl_inline u64 sl_host_stolen_ns(struct sl_task *t, u64 ran_ns)
{
	(void)t;
	(void)ran_ns;
	return 0;
}

#endif
