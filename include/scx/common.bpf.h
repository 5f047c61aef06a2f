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

#endif
