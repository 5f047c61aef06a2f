/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kernel.h - what published schedulers, and no policy of this project, have from Linux and
 * libbpf: included before all else where one is compiled natively.
 *
 * The types are as small as what is read of them. A program for a tracepoint, probe or
 * exit of a function compiles; no host here calls it.
 *
 * Read next: python/schedlab/policy/published.py.
 */
#ifndef SL_PUBLISHED_KERNEL_H
#define SL_PUBLISHED_KERNEL_H

#include <scx/common.bpf.h>

#undef bool
typedef _Bool bool;
/* Also said of functions that another file may replace; this compiler decides by itself. */
#undef __always_inline
#define __always_inline
#define always_inline

/* For the loader. */
__attribute__((weak)) const bool sl_is_published = true;

#define NR_CPUS SCX_CPUS_MAX
#define EALREADY 114
#define ECANCELED 125
#define ETIMEDOUT 110
typedef s32 pid_t;
typedef s64 ktime_t;
typedef struct {
	int counter;
} atomic_t;
typedef s64 loff_t;
typedef long ssize_t;
typedef u64 __attribute__((may_alias)) __u64_alias_t;
typedef struct {
	unsigned long bits[1];
} nodemask_t;
typedef struct {
	void *lock;
} class_rcu_t;

/* Each file of a scheduler has one, and they become one object. */
#define _license __attribute__((weak)) _license

#define __arg_nonnull
#define BPF_PROG(name, ...) name(void *ctx, ##__VA_ARGS__)
#define bpf_get_func_ret(ctx, result) ((void)(ctx), (void)(result), -EINVAL)
#define BPF_PROBE_READ BPF_CORE_READ
#define bpf_core_type_matches(type) 1
#define bpf_core_type_size(type) sizeof(type)
#define bpf_core_cast(ptr, type) ((type *)(ptr))
#define __builtin_memcpy_inline __builtin_memcpy
/* Version 1.1's headers have it; schedulers of earlier ones have a function of that name. */
#if __has_include(<scx/cid.bpf.h>)
#define div_round_up(a, b) (((a) + (b)-1) / (b))
#endif
#define __sink(value) __asm__ volatile("" : "+g"(value))
#define barrier() __asm__ volatile("" : : : "memory")
#define ___bpf_concat(a, b) a##b
#define ___bpf_apply(name, suffix) ___bpf_concat(name, suffix)
#define smp_load_acquire(at) __atomic_load_n((at), __ATOMIC_ACQUIRE)
#define smp_store_release(at, value) __atomic_store_n((at), (value), __ATOMIC_RELEASE)
#define smp_mb() __sync_synchronize()
#define smp_rmb() smp_mb()
#define smp_wmb() smp_mb()
#define cmpxchg(at, old, new) __sync_val_compare_and_swap((at), (old), (new))
#define scx_bpf_dump_header() scx_bpf_dump("schedlab\n")

/* No variable of the kernel's that each CPU has is here: its address is NULL, too. */
#define bpf_per_cpu_ptr(variable, cpu) ((void)(variable), (void)(cpu), (void *)NULL)
static inline int cpu_priority(s32 cpu)
{
	return cpu < 0 ? -EINVAL : -ENOENT;
}

/*
 * These Linux has since 7.1. A scheduler for earlier versions, too, takes 0 and -EOPNOTSUPP for those that
 * have them not.
 */
#undef SCX_ENQ_IMMED
#define SCX_ENQ_IMMED 0ULL
#undef SCX_TASK_IMMED
#define SCX_TASK_IMMED 0U
static inline bool __COMPAT_has_generic_reenq(void)
{
	return false;
}

static inline int scx_bpf_reenqueue_local_from_anywhere(void)
{
	return -EOPNOTSUPP;
}

/* Linux had it, and took it away for what follows the pointer. */
struct rq {
	struct task_struct *curr;
};

static inline struct rq *scx_bpf_cpu_rq(s32 cpu)
{
	static struct rq queues[NR_CPUS];
	struct task_struct *curr = scx_bpf_cpu_curr(cpu);

	if (!curr)
		return NULL;
	queues[cpu].curr = curr;
	return &queues[cpu];
}

/*
 * A CPU's clock without interrupts and hypervisors, of which there are none; and the one of its work, slower
 * on a small CPU. Both also go on while it is idle.
 */
static inline u64 scx_clock_task(u32 cpu)
{
	return scx_bpf_now();
}

static inline u64 scx_clock_pelt(u32 cpu)
{
	u64 now_ns = scx_bpf_now(), capacity = scx_bpf_cpuperf_cap((s32)cpu);

	return now_ns / SCX_CPUPERF_ONE * capacity +
	       now_ns % SCX_CPUPERF_ONE * capacity / SCX_CPUPERF_ONE;
}

/* Nothing interrupts a callback here. */
static inline void bpf_preempt_disable(void) { }

static inline void bpf_preempt_enable(void) { }

static inline void bpf_local_irq_save(unsigned long *flags)
{
	*flags = 0;
}

static inline void bpf_local_irq_restore(unsigned long *flags) { }

/* A waker that is no task is a timer's interrupt, or a device's. (S39) */
static inline int bpf_in_hardirq(void)
{
	return !bpf_in_task();
}

static inline int bpf_in_nmi(void)
{
	return 0;
}

static inline int bpf_in_serving_softirq(void)
{
	return 0;
}

static inline u64 get_prandom_u64(void)
{
	u64 high = bpf_get_prandom_u32();

	return high << 32 | bpf_get_prandom_u32();
}

static inline u32 ctzll(u64 v)
{
	return v ? (u32)__builtin_ctzll(v) : 64;
}

/*
 * A mean that forgets: of @new a part of 1/2^@decay, or a half where either is smaller than
 * such a part can show.
 */
#define __calc_avg(old, new, decay)					\
	({								\
		__typeof__(old) ___old = (old), ___new = (new);		\
		u32 ___shift = ___old >> (decay) && ___new >> (decay) ? (decay) : 1; \
		___old == 1 && !___new ? (__typeof__(old))0 :		\
			___old - (___old >> ___shift) + (___new >> ___shift); \
	})

/* A group and its share of the CPUs are one here. */
#define sched_task_group cgroups->dfl_cgrp->task_group

/* A task's own mask, where cpus_ptr points unless it must not migrate: the same here. */
#define cpus_mask cpus_ptr[0]

enum mempolicy_mode { MPOL_PREFERRED = 1, MPOL_BIND = 2, MPOL_PREFERRED_MANY = 5 };
struct mempolicy {
	u16 mode;
	s32 home_node;
	nodemask_t nodes;
};

struct cpufreq_policy {
	struct {
		u32 max_freq;
	} cpuinfo;
	u32 max;
};

struct trace_entry {
	u16 type;
	u8 flags;
	u8 preempt_count;
	s32 pid;
};

#endif
