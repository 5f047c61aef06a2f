/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * time_in_32_bits.bpf.c - a slice lasts until an instant of microseconds in 32 bits. 72 minutes after the
 * machine has started the instant is in the past, and what is left until then has no end.
 *
 * @breaks stall
 * @shown-by start
 */
#include "bug.h"

#define PERIOD_US 20000ULL
#define CLOCK_TYPE u32

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 end_us = (CLOCK_TYPE)(scx_bpf_now() / 1000) + PERIOD_US;

	scx_bpf_dsq_insert(p, SHARED, end_us * 1000 - scx_bpf_now(), enq_flags);
	kick_idle_for(p);
}

#include "bug_ops.h"
