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

#include <virtual_inline.h>

typedef struct {
} sl_lock_t;

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

/* The simulator skips ticks that change nothing, so it must hear of slices. */
void sim_slice_changed(struct sl_task *t);

sl_inline void sl_host_slice_changed(struct sl_task *t)
{
	sim_slice_changed(t);
}

/* An event is handled from its beginning to its end; hosts/check interleaves them. */
#define SIM_INTERLEAVES 0
#define sim_begin_cpu(cpu, class) sim_cpu_handle(cpu, class)
#define sim_begin_heap() sim_handle_heap()
#define sim_switches() NULL
#define sim_serve_worlds(options) false
#define sim_begin_machine_events() ((void)0)
#define sim_machine_event() ((void)0)
#define sim_restarts(info) false
#define sim_kick_delay_ns(cpu) 0
#define sim_clock_start_ns() 0
#define sim_map_block(bytes) sim_map(bytes)
#define sim_unmap_block(mem, bytes) sim_unmap(mem, bytes)

#endif
