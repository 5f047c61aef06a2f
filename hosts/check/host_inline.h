/* SPDX-License-Identifier: MIT */
/*
 * host_inline.h - the inline part of the host contract, where CPUs interleave.
 *
 * Each CPU is a coroutine of one thread. Another CPU continues only at a point: a lock,
 * an atomic operation, an access of the policy. Between two points nothing is shared
 * with another CPU, so atomics are plain operations.
 *
 * Read next: interleave.c.
 */
#ifndef CHECK_HOST_INLINE_H
#define CHECK_HOST_INLINE_H

#include <scx/types.h>
#include <schedlab/compiler.h>
#include <virtual_inline.h>

/* A CPU that waits for a lock does not spin: it continues once the lock is free. */
typedef struct {
	u32 holder; /* CPU + 1; 0: free */
} sl_lock_t;

/* Another CPU may continue here, before this one accesses @at. */
void check_point(const void *at, bool is_write);
void check_lock(sl_lock_t *lock);
void check_unlock(sl_lock_t *lock);
void check_relax(void);
bool check_policy_lock(const u32 *holder, const void *lock, const void *caller);
void check_policy_unlock(const u32 *holder);
#define sl_host_policy_lock(holder, lock, caller) check_policy_lock(holder, lock, caller)
#define sl_host_policy_unlock(holder) check_policy_unlock(holder)

sl_inline void sl_lock_init(sl_lock_t *lock)
{
	lock->holder = 0;
}

sl_inline void sl_lock(sl_lock_t *lock)
{
	check_lock(lock);
}

sl_inline void sl_unlock(sl_lock_t *lock)
{
	check_unlock(lock);
}

sl_inline void sl_host_relax(void)
{
	check_relax();
}

sl_inline bool sl_bit_test_and_set(u64 *words, u32 bit)
{
	u64 mask = 1ULL << (bit % 64);
	u64 *word = &words[bit / 64];
	bool was;

	check_point(word, true);
	was = *word & mask;
	*word |= mask;
	return was;
}

sl_inline bool sl_bit_test_and_clear(u64 *words, u32 bit)
{
	u64 mask = 1ULL << (bit % 64);
	u64 *word = &words[bit / 64];
	bool was;

	check_point(word, true);
	was = *word & mask;
	*word &= ~mask;
	return was;
}

sl_inline bool sl_cas_u64(u64 *at, u64 old, u64 new)
{
	check_point(at, true);
	if (*at != old)
		return false;
	*at = new;
	return true;
}

#define sl_host_fence() ((void)0)

void sim_slice_changed(struct sl_task *t);
void check_slice_changed(struct sl_task *t);
#define sl_host_slice_changed(t) check_slice_changed(t)

/* What a policy is called for, and what it does then: calls.c. */
extern bool check_shows_calls;
struct sl_task;
void check_callback_begins(const char *callback, const struct sl_task *t, ...);
void check_callback_ends(const char *callback, const s64 *value);
void check_does(const char *kind, const struct sl_task *t, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
#define sl_host_callback_begins(...)					\
	(unlikely(check_shows_calls) ? check_callback_begins(__VA_ARGS__) : (void)0)
#define sl_host_callback_ends(callback)					\
	(unlikely(check_shows_calls) ? check_callback_ends(callback, NULL) : (void)0)
#define sl_host_callback_returns(callback, value)			\
	(unlikely(check_shows_calls) ?					\
		 check_callback_ends(callback, &(const s64){ (s64)(value) }) : (void)0)
#define sl_host_does(kind, t, ...)					\
	(unlikely(check_shows_calls) ? check_does(kind, t, __VA_ARGS__) : (void)0)

/* An event begins on a CPU, and others of the same instant may interleave with it. */
#define SIM_INTERLEAVES 1
void check_begin_cpu(s32 cpu, u32 class);
void check_begin_heap(void);
const char *check_switches(void);
#define sim_begin_cpu(cpu, class) check_begin_cpu(cpu, class)
#define sim_begin_heap() check_begin_heap()
#define sim_switches() check_switches()
struct sim_options;
struct scx_exit_info;
bool check_serve_worlds(struct sim_options *defaults);
#define sim_serve_worlds(options) check_serve_worlds(options)
/* What happens to the machine: events.c. */
void check_begin_events(void);
void check_machine_event(void);
u64 check_kick_delay_ns(s32 cpu);
bool check_helper_fails(void);
u64 check_clock_ahead_ns(void);
bool check_restarts(const struct scx_exit_info *info);
#define sim_begin_machine_events() check_begin_events()
#define sim_machine_event() check_machine_event()
#define sim_restarts(info) check_restarts(info)
#define sim_kick_delay_ns(cpu) check_kick_delay_ns(cpu)
#define sl_host_helper_fails() check_helper_fails()
#define sl_host_clock_ahead_ns() check_clock_ahead_ns()
extern u64 check_clock_start_ns;
#define sim_clock_start_ns() check_clock_start_ns
#define sl_host_policy_now_ns() (sl_host_now_ns() + check_clock_start_ns)
#define sl_host_policy_time_ns(ns) ((ns) + check_clock_start_ns)
void *check_map_block(u64 bytes);
void check_unmap_block(void *at, u64 bytes);
#define sim_map_block(bytes) check_map_block(bytes)
#define sim_unmap_block(mem, bytes) check_unmap_block(mem, bytes)

#endif
