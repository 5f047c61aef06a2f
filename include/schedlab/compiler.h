/* SPDX-License-Identifier: MIT */
/*
 * compiler.h - what we tell the compiler about the way through the core.
 *
 * A switch costs a few dozen nanoseconds, and half of that would be calls, were
 * its steps not one piece. So what each switch does is in line, and what happens
 * seldom stays out of the way.
 *
 * Read next: host.h.
 */
#ifndef SCHEDLAB_COMPILER_H
#define SCHEDLAB_COMPILER_H

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define sl_cold __attribute__((cold, noinline))
#ifndef __noinline
#define __noinline __attribute__((noinline))	/* frequent, but not on each switch */
#endif
#define __flatten __attribute__((flatten))	/* what it calls is in line */
#define sl_inline static inline __attribute__((always_inline))

#endif
