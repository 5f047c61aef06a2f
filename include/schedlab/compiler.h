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

/* likely(), unlikely(), and __noinline for what is frequent, but not on each switch. */
#include <scx/words.h>

#define sl_cold __attribute__((cold, noinline))
#define __flatten __attribute__((flatten))	/* what it calls is in line */
#define sl_inline static inline __attribute__((always_inline))

#endif
