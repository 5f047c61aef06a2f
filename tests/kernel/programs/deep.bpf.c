/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * deep.bpf.c - a policy that does what the verifier would refuse: it calls
 * itself until the stack is used up, or writes to nowhere.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

/*
 * @knob nowhere 1 0 1   1: write to an address that is not mapped; 0: recurse
 */
const volatile u32 nowhere = 0;

static __noinline u64 go_deeper(u64 *above, u64 depth)
{
	volatile u64 here[16];

	here[0] = depth + above[0];
	return depth > 100000 ? here[0] : go_deeper((u64 *)here, depth + 1) + here[0];
}

void BPF_STRUCT_OPS(deep_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 start = 1;

	if (nowhere)
		*(volatile u64 *)0x123456789000 = 1;
	p->scx.dsq_vtime = go_deeper(&start, 0);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

SCX_OPS_DEFINE(deep_ops,
	       .enqueue	= (void *)deep_enqueue,
	       .name	= "deep");
