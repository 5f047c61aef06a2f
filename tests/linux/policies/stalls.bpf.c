/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* stalls.bpf.c - forgets all but kernel threads; the watchdog must notice. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

void BPF_STRUCT_OPS(stalls_enqueue, struct task_struct *p, u64 enq_flags)
{
	/* The watchdog is a kernel thread, and must be able to look. */
	if (p->flags & PF_KTHREAD)
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

SCX_OPS_DEFINE(stalls_ops,
	       .enqueue = (void *)stalls_enqueue,
	       .timeout_ms = 1000,
	       .name = "stalls");
