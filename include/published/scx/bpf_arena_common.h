/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Where earlier versions of the library look for it. */
#include <bpf_arena_common.bpf.h>
