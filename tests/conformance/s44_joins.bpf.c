/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S44: tasks run by the weight of their group, the heaviest first, wherever they are at the time. */
#include "conform.h"

#define ORDERED 0

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, u64);
} weights SEC(".maps");

s32 BPF_STRUCT_OPS_SLEEPABLE(t_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	u64 id = cgrp->kn->id, weight = args->weight;

	return (s32)bpf_map_update_elem(&weights, &id, &weight, BPF_ANY);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(ORDERED, -1);
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);
	u64 id = cgrp->kn->id;
	u64 *weight = bpf_map_lookup_elem(&weights, &id);

	scx_bpf_dsq_insert_vtime(p, ORDERED, SCX_SLICE_DFL, 10000 - (weight ? *weight : 0),
				 enq_flags);
	bpf_cgroup_release(cgrp);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(ORDERED, 0);
}

SCX_OPS_DEFINE(t_ops, .cgroup_init = (void *)t_cgroup_init, .init = (void *)t_init,
	       .enqueue = (void *)t_enqueue, .dispatch = (void *)t_dispatch, .name = "t");
