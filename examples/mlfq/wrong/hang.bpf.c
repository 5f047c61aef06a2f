/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* hang.bpf.c - waits in a callback for a task that will not come. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

static volatile u64 nr_waiting;

void BPF_STRUCT_OPS(hang_enqueue, struct task_struct *p, u64 enq_flags)
{
	while (!nr_waiting)
		;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

SCX_OPS_DEFINE(hang_ops, .enqueue = (void *)hang_enqueue, .name = "hang");
