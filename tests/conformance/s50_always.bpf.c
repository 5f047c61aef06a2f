/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S50: the same, without a flag of its own in each insertion. */
#define S50_FLAG 0
#define S50_OPS_FLAGS SCX_OPS_ALWAYS_ENQ_IMMED
#include "s50_immed.bpf.c"
