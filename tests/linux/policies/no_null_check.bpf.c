/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* no_null_check.bpf.c - trusts a lookup; the verifier must refuse it. */
#include <scx/common.bpf.h>
#include <scx/task_attr.h>

char _license[] SEC("license") = "GPL";

void BPF_STRUCT_OPS(unchecked_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_attr *attr = task_attr(p);

	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, attr->burst_ns, enq_flags);
}

SCX_OPS_DEFINE(unchecked_ops,
	       .enqueue = (void *)unchecked_enqueue,
	       .name = "no_null_check");
