/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* unknown_dsq.bpf.c - inserts into a queue that nobody created. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

void BPF_STRUCT_OPS(unknown_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, 0x63, SCX_SLICE_DFL, enq_flags);
}

SCX_OPS_DEFINE(unknown_ops,
	       .enqueue = (void *)unknown_enqueue,
	       .name = "unknown_dsq");
