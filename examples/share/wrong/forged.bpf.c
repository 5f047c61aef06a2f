/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* forged.bpf.c - overwrites the memory of the simulator, in which its result is made. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

void BPF_STRUCT_OPS(forged_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 *word = (u64 *)p;
	u32 i;

	bpf_for(i, 0, 1 << 20)
		word[i] = ~0ULL;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

SCX_OPS_DEFINE(forged_ops, .enqueue = (void *)forged_enqueue, .name = "forged");
