/* SPDX-License-Identifier: MIT */
/*
 * compiler.h - what the compiler is told about the way through the core.
 *
 * A switch costs a few dozen nanoseconds, and half of that would be calls, were
 * its steps not one piece. So what each switch does is in line, and what happens
 * seldom stays out of the way.
 *
 * Read next: host.h.
 */
#ifndef SCHEDLAB_COMPILER_H
#define SCHEDLAB_COMPILER_H

/* likely(), unlikely(), and __noinline for what is frequent, but not on each switch. */
#include <scx/words.h>

/* Plain moves on x86; one instruction elsewhere. READ_ONCE() and WRITE_ONCE() are in scx/words.h. */
#define smp_load_acquire(at) __atomic_load_n((at), __ATOMIC_ACQUIRE)
#define smp_store_release(at, value) __atomic_store_n((at), (value), __ATOMIC_RELEASE)

#define ____cacheline_aligned __attribute__((aligned(64)))
#define sl_cold __attribute__((cold, noinline))
#define __flatten __attribute__((flatten))	/* what it calls is in line */
#define sl_inline static inline __attribute__((always_inline))

#endif
