/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* lost.bpf.c - puts tasks into a queue that it never looks into. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

void BPF_STRUCT_OPS(lost_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, 7, SCX_SLICE_DFL, enq_flags);
}

void BPF_STRUCT_OPS(lost_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(8);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(lost_init)
{
	s32 err = scx_bpf_create_dsq(7, -1);

	return err ?: scx_bpf_create_dsq(8, -1);
}

SCX_OPS_DEFINE(lost_ops,
	       .enqueue = (void *)lost_enqueue,
	       .dispatch = (void *)lost_dispatch,
	       .init = (void *)lost_init,
	       .name = "lost");
