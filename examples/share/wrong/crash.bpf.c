/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* crash.bpf.c - divides by zero where tasks have 100 tickets. */
#include <scx/common.bpf.h>
#include <scx/task_attr.h>

char _license[] SEC("license") = "GPL";

void BPF_STRUCT_OPS(crash_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 more = task_tickets(p) - 100;

	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 1000000000ULL / more, enq_flags);
}

SCX_OPS_DEFINE(crash_ops, .enqueue = (void *)crash_enqueue, .name = "crash");
