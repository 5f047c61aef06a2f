/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * starter.bpf.c - where the assignment begins: one queue, first come, first served, slices of 10 ms.
 *
 * To do: CPU time in proportion to tickets; see include/scx/task_attr.h and scx_bpf_dsq_insert_vtime().
 */
#include <scx/common.bpf.h>
#include <scx/idle.h>

char _license[] SEC("license") = "GPL";

#define SHARED 0
#define SLICE_NS 10000000

s32 BPF_STRUCT_OPS(starter_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_and_insert(p, prev_cpu, wake_flags, SLICE_NS);
}

void BPF_STRUCT_OPS(starter_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SHARED, SLICE_NS, enq_flags);
	kick_idle_cpu(p, enq_flags);
}

void BPF_STRUCT_OPS(starter_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!scx_bpf_dsq_move_to_local(SHARED) && prev && (prev->scx.flags & SCX_TASK_QUEUED))
		scx_bpf_task_set_slice(prev, SLICE_NS);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(starter_init)
{
	return scx_bpf_create_dsq(SHARED, -1);
}

SCX_OPS_DEFINE(starter_ops,
	       .select_cpu = (void *)starter_select_cpu,
	       .enqueue = (void *)starter_enqueue,
	       .dispatch = (void *)starter_dispatch,
	       .init = (void *)starter_init,
	       .name = "starter");
