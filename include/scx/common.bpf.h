/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * common.bpf.h - the one header that a policy includes.
 *
 * Compiled with `clang -target bpf` it declares what Linux offers a sched_ext
 * program; compiled natively it declares the same names, which core/ then
 * implements. A policy cannot tell which, and must not try.
 *
 * Read next: native.h (the hosts of this project) or bpf.h (Linux).
 */
#ifndef SCX_COMMON_BPF_H
#define SCX_COMMON_BPF_H

#ifdef __bpf__
#include <scx/bpf.h>
#else
#include <scx/native.h>
#endif

/* Virtual time wraps: compare with these, never with < or >. */
static inline bool time_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline bool time_after(u64 a, u64 b)
{
	return (s64)(b - a) < 0;
}

static inline bool time_before_eq(u64 a, u64 b)
{
	return !time_after(a, b);
}

static inline bool time_after_eq(u64 a, u64 b)
{
	return !time_before(a, b);
}

static inline bool time_in_range(u64 time, u64 first, u64 last)
{
	return time_after_eq(time, first) && time_before_eq(time, last);
}

static inline bool time_in_range_open(u64 time, u64 first, u64 end)
{
	return time_after_eq(time, first) && time_before(time, end);
}

/* How much later @after is; 0 where it is earlier. */
static inline s64 time_delta(u64 after, u64 before)
{
	return time_after(after, before) ? (s64)(after - before) : 0;
}

/* A task of weight 100 is charged as it is; a heavier one less. */
static inline u64 scale_by_task_weight_inverse(const struct task_struct *p, u64 value)
{
	return value * 100 / p->scx.weight;
}

static inline u64 scale_by_task_weight(const struct task_struct *p, u64 value)
{
	return value * p->scx.weight / 100;
}

#include <scx/errno.h>

#define NUMA_NO_NODE (-1)

#include <scx/compat.bpf.h>

#endif
