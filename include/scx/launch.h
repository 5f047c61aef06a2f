/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * launch.h - for the part of a scheduler's user half that is written in C.
 *
 * NAME.launch.c is compiled as the end of the scheduler's main file, and has a function:
 *
 *	static int launch(void)
 *
 * It is called before the policy's init, where maps exist, and returns 0 or an error. It may
 * write constants, fill maps, call SEC("syscall") programs and ask about the machine. What the
 * user half does while tasks run is in SL_USER_HALF() and SL_USER_THREAD(), for the simulator; a file
 * may have the latter alone.
 *
 * For the guest it is called outside, and the kernel's copy of the scheduler gets the variables and
 * entries of maps that it has written: bytes, which may not be addresses. What it has from SL_CALL()
 * is called there, too, between what it has written before and after; addresses in arenas are the kernel's.
 *
 * Read next: python/schedlab/policy/launch_file.py.
 */
#ifndef SCX_LAUNCH_H
#define SCX_LAUNCH_H

#include <scx/native.h>

/* launch() of a user half that a machine of one node can do without: `schedlab load` then does. */
#define SL_LAUNCH_ON_NODES() static int launch(void)

/*
 * Write a `const volatile` variable, or an element or member of one. The compiler does not see where:
 * it may drop what is stored to a constant.
 */
#define SL_SET(place, value)						\
	({								\
		__typeof__(place) ___value = (value);			\
		void *___at = (void *)&(place);				\
		__asm__ volatile("" : "+r"(___at) : : "memory");	\
		__builtin_memcpy(___at, (const void *)&___value, sizeof(___value)); \
	})

/* For #if: whether the scheduler's files have a name, which not each of its versions has. */
#define SL_HAS(name) SL_HAS_##name

/* The lowest CPU of the same core; sl_scx_cpu_llc_id() is that of the same cache. */
int sl_scx_cpu_core_id(s32 cpu);

/*
 * How long @cpu has run tasks of the workload, has done all else (switches, ticks, tasks above the policy,
 * the user half), and has been idle, as /proc/stat says. While it is offline none of these grows.
 */
u64 sl_scx_cpu_user_ns(s32 cpu);
u64 sl_scx_cpu_system_ns(s32 cpu);
u64 sl_scx_cpu_idle_ns(s32 cpu);

/* How many cores or caches there are up to that of @cpu, less one: its number. */
static inline u32 sl_index_of(int (*lowest_cpu)(s32 cpu), s32 cpu)
{
	u32 nr = 0;

	for (s32 i = 0; i < lowest_cpu(cpu); i++)
		nr += lowest_cpu(i) == i;
	return nr;
}

static inline u32 sl_count_of(int (*lowest_cpu)(s32 cpu))
{
	return sl_index_of(lowest_cpu, lowest_cpu((s32)scx_bpf_nr_cpu_ids() - 1)) + 1;
}

static inline bool sl_has_smt(void)
{
	return sl_count_of(sl_scx_cpu_core_id) < scx_bpf_nr_cpu_ids();
}

/* Another CPU of the same core, or -1. */
static inline s32 sl_sibling_of(s32 cpu)
{
	for (s32 i = 0; i < (s32)scx_bpf_nr_cpu_ids(); i++) {
		if (i != cpu && sl_scx_cpu_core_id(i) == sl_scx_cpu_core_id(cpu))
			return i;
	}
	return -1;
}

/* An element of an array of maps. Return: 0, or -errno. */
int sl_map_create_inner(struct sl_map *outer, u32 element, u32 type, u32 value_bytes,
			u32 max_entries);

/*
 * The loop of a scheduler that decides in user space: a task of its own, which the policy queues like
 * others. Each time that it runs, it needs @ns of CPU time, then the body is executed, and the task yields.
 */
#define SL_USER_HALF(ns)						\
	extern const u64 sl_user_half_ns;				\
	const u64 sl_user_half_ns = (ns);				\
	void sl_user_half(void);					\
	void sl_user_half(void)

/* The pid of that task. */
s32 sl_scx_user_half_pid(void);

/*
 * Another thread of the user half, which no policy need know: an ordinary task that sleeps for
 * @period_ns, needs @ns of CPU time, and then the body is executed; again and again. It begins
 * asleep. With a body that is empty it is what wakes up a machine where all else sleeps.
 */
#define SL_USER_THREAD(period_ns, ns)					\
	_Static_assert((period_ns) > 0, "it sleeps");			\
	extern const u64 sl_user_thread_ns[2];				\
	const u64 sl_user_thread_ns[2] = { (period_ns), (ns) };		\
	void sl_user_thread(void);					\
	void sl_user_thread(void)

/*
 * Say that launch() refuses this machine, and why; it returns the result, -EINVAL. The message has the
 * launch file's name and line.
 */
#define SL_REFUSE(fmt, ...) \
	sl_scx_launch_refuse("its user half refuses this machine: " __FILE_NAME__ ":%d: " fmt, \
			     __LINE__, ##__VA_ARGS__)
int sl_scx_launch_refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * The oldest record of a ring buffer of the policy's, taken; and one more in a ring buffer that the policy
 * drains. Return: whether there was one that fits *@to; whether there was room.
 */
#define SL_RING_READ(m, to) sl_scx_ring_read(SL_MAP_AREA(m), (to), sizeof(*(to)))
#define SL_RING_WRITE(m, from) sl_scx_ring_write(SL_MAP_AREA(m), (from), sizeof(*(from)))
bool sl_scx_ring_read(struct sl_map *ring, void *to, u32 bytes_max);
bool sl_scx_ring_write(struct sl_map *ring, const void *from, u32 bytes);

/* Call a SEC("syscall") program, which may change its input; NULL, 0: it has none. */
#define SL_CALL(program, input, bytes) \
	sl_scx_launch_call(#program, (int (*)(void *))(void *)(program), (input), (bytes))
int sl_scx_launch_call(const char *name, int (*program)(void *input), void *input, u32 bytes);

/* Create a map that no call names by its variable. */
#define SL_CREATE_MAP(m) ((void)SL_MAP(m))

#endif
