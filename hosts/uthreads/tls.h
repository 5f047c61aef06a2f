/* SPDX-License-Identifier: MIT */
/*
 * tls.h - which kernel thread runs this code, and may it be preempted.
 *
 * A user thread goes from one kernel thread to another, so the address of
 * anything thread-local is wrong after a switch. Compilers do not know that and
 * keep such addresses in registers. Everything here is therefore read by an
 * instruction of its own each time, relative to the thread pointer, and the
 * preemption count is changed by one: on x86-64 no signal can come between its
 * reading and its writing.
 *
 * Read next: preempt.c.
 */
#ifndef UT_TLS_H
#define UT_TLS_H

#include <stdint.h>

#include <scx/types.h>

struct ut_cpu_inline;

/* Offsets are in the assembly below. */
struct ut_tls {
	struct ut_cpu_inline *cpu; /* 0: NULL: no kernel thread of the machine */
	u32 preempt_count;	   /* 8: not zero: do not preempt */
	s32 cpu_idx;		   /* 12 */
	void *core_cpu;		   /* 16: the core's half of it, struct sl_cpu */
};

extern __thread struct ut_tls ut_tls
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

#if defined(__x86_64__)

static inline uintptr_t ut_thread_pointer(void)
{
	uintptr_t at;

	__asm__ volatile("movq %%fs:0, %0" : "=r"(at));
	return at;
}

static inline void *ut_tls_cpu(void)
{
	void *cpu;

	__asm__ volatile("movq ut_tls@gottpoff(%%rip), %0\n\t"
			 "movq %%fs:(%0), %0"
			 : "=r"(cpu));
	return cpu;
}

static inline void *ut_tls_core_cpu(void)
{
	void *cpu;

	__asm__ volatile("movq ut_tls@gottpoff(%%rip), %0\n\t"
			 "movq %%fs:16(%0), %0"
			 : "=r"(cpu));
	return cpu;
}

static inline s32 ut_tls_cpu_idx(void)
{
	u64 at;
	s32 idx;

	__asm__ volatile("movq ut_tls@gottpoff(%%rip), %0\n\t"
			 "movl %%fs:12(%0), %1"
			 : "=&r"(at), "=r"(idx));
	return idx;
}

static inline void ut_count_up(void)
{
	u64 at;

	__asm__ volatile("movq ut_tls@gottpoff(%%rip), %0\n\t"
			 "incl %%fs:8(%0)"
			 : "=&r"(at)
			 :
			 : "memory", "cc");
}

/* Return: whether the count is now zero. */
static inline bool ut_count_down(void)
{
	bool is_zero;
	u64 at;

	__asm__ volatile("movq ut_tls@gottpoff(%%rip), %0\n\t"
			 "decl %%fs:8(%0)"
			 : "=&r"(at), "=@ccz"(is_zero)
			 :
			 : "memory");
	return is_zero;
}

static inline u32 ut_count(void)
{
	u64 at;
	u32 count;

	__asm__ volatile("movq ut_tls@gottpoff(%%rip), %0\n\t"
			 "movl %%fs:8(%0), %1"
			 : "=&r"(at), "=r"(count));
	return count;
}

static inline u64 ut_cycles(void)
{
	u32 low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (u64)high << 32 | low;
}

static inline void ut_pause(void)
{
	__asm__ volatile("pause");
}

/* An exchange orders what comes after it, too. */
static inline void ut_fence_after_exchange(void)
{
	__asm__ volatile("" : : : "memory");
}

/* This CPU will write there soon. Compilers know the other instruction, for reading. */
static inline void ut_prefetch(const void *at)
{
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
}

#else

static inline struct ut_tls *ut_tls_now(void)
{
	char *at;

#if defined(__aarch64__)
	u64 offset;

	__asm__ volatile("mrs %0, tpidr_el0\n\t"
			 "adrp %1, :gottprel:ut_tls\n\t"
			 "ldr %1, [%1, :gottprel_lo12:ut_tls]\n\t"
			 "add %0, %0, %1"
			 : "=&r"(at), "=&r"(offset));
#elif defined(__riscv) && __riscv_xlen == 64
	__asm__ volatile("la.tls.ie %0, ut_tls\n\t"
			 "add %0, %0, tp"
			 : "=&r"(at));
#else
#error "no thread-local access for this processor; add it here and in context_*.S"
#endif
	return (struct ut_tls *)at;
}

static inline uintptr_t ut_thread_pointer(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

/* An exchange alone orders no reading after it. */
static inline void ut_fence_after_exchange(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void ut_prefetch(const void *at)
{
	__builtin_prefetch(at, 1);
}

static inline void *ut_tls_cpu(void)
{
	return __atomic_load_n(&ut_tls_now()->cpu, __ATOMIC_RELAXED);
}

static inline void *ut_tls_core_cpu(void)
{
	return __atomic_load_n(&ut_tls_now()->core_cpu, __ATOMIC_RELAXED);
}

static inline s32 ut_tls_cpu_idx(void)
{
	return __atomic_load_n(&ut_tls_now()->cpu_idx, __ATOMIC_RELAXED);
}

/*
 * Several instructions: a thread that is preempted between them comes back on
 * the same kernel thread (migration is disabled), and finds the count as it was.
 */
static inline void ut_count_up(void)
{
	struct ut_tls *tls = ut_tls_now();
	u32 count = __atomic_load_n(&tls->preempt_count, __ATOMIC_RELAXED);

	__atomic_store_n(&tls->preempt_count, count + 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline bool ut_count_down(void)
{
	struct ut_tls *tls = ut_tls_now();
	u32 count;

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	count = __atomic_load_n(&tls->preempt_count, __ATOMIC_RELAXED) - 1;
	__atomic_store_n(&tls->preempt_count, count, __ATOMIC_RELAXED);
	return count == 0;
}

static inline u32 ut_count(void)
{
	return __atomic_load_n(&ut_tls_now()->preempt_count, __ATOMIC_RELAXED);
}

#if defined(__aarch64__)
static inline u64 ut_cycles(void)
{
	u64 cycles;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(cycles));
	return cycles;
}

static inline void ut_pause(void)
{
	__asm__ volatile("yield");
}
#else
static inline u64 ut_cycles(void)
{
	u64 cycles;

	__asm__ volatile("rdtime %0" : "=r"(cycles));
	return cycles;
}

static inline void ut_pause(void)
{
	/* `pause` of Zihintpause is a hint, harmless where it is unknown. */
	__asm__ volatile(".insn i 0x0F, 0, x0, x0, 0x010");
}
#endif
#endif

#endif
