/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* gives_up.bpf.c - reports an error of its own, with arguments. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

const volatile u64 patience = 3;
static u64 nr_enqueued;

void BPF_STRUCT_OPS(gives_up_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
	if (__sync_fetch_and_add(&nr_enqueued, 1) == patience)
		scx_bpf_error("%s: enough after %llu", "gives_up", patience);
}

SCX_OPS_DEFINE(gives_up_ops,
	       .enqueue = (void *)gives_up_enqueue,
	       .name = "gives_up");
