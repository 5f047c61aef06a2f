/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S34: queues the last one first where a clock is near 0 as the policy begins. */
#include "conform.h"

#define SECOND_NS 1000000000ULL

static bool is_early;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_INF,
			   is_early ? enq_flags | SCX_ENQ_HEAD : enq_flags);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	is_early = bpf_ktime_get_ns() < SECOND_NS || scx_bpf_now() < SECOND_NS;
	return 0;
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .init = (void *)t_init, .name = "t");
