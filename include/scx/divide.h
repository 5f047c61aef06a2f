/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * divide.h - the division that BPF lacks (before its version 4): of a signed number.
 *
 * Read next: policies/stride.bpf.c, a small user.
 */
#ifndef SCX_DIVIDE_H
#define SCX_DIVIDE_H

#include <scx/common.bpf.h>

static __always_inline s64 divide_signed(s64 a, u64 b)
{
	return a < 0 ? -(s64)((u64)-a / b) : (s64)((u64)a / b);
}

#endif
