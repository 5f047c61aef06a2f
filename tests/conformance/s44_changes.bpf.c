/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S44: a policy is told of a cgroup's new weight and quota. Tasks of the heavier group come first,
 * those of a group with a quota last. A value that nothing has asked for is an error.
 */
#include "conform.h"

#define QUEUE 7

u64 x_id, y_id; /* ids of the cgroups, by their first weights */
/* Not static: clang would make bytes of them, which Linux refuses. */
u64 x_weight, y_weight, y_quota_us;

s32 BPF_STRUCT_OPS_SLEEPABLE(t_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	if (args->weight == 300) {
		x_id = cgrp->kn->id;
		x_weight = 300;
	}
	if (args->weight == 200) {
		y_id = cgrp->kn->id;
		y_weight = 200;
	}
	return 0;
}

void BPF_STRUCT_OPS(t_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	if (cgrp->kn->id != y_id || weight != 400)
		scx_bpf_error("weight %d", weight);
	y_weight = weight;
}

void BPF_STRUCT_OPS(t_cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us,
		    u64 burst_us)
{
	if (cgrp->kn->id != y_id || period_us != 50000 || quota_us != 20000 || burst_us)
		scx_bpf_error("quota %llu of %llu", quota_us, period_us);
	y_quota_us = quota_us;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);
	u64 id = cgrp->kn->id;
	u64 vtime = 10000;

	bpf_cgroup_release(cgrp);
	if (id == x_id)
		vtime -= x_weight;
	else if (id == y_id && !y_quota_us)
		vtime -= y_weight;
	else if (id == y_id)
		vtime *= 2;
	scx_bpf_dsq_insert_vtime(p, QUEUE, SCX_SLICE_INF, vtime, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .dispatch = (void *)t_dispatch,
	       .cgroup_init = (void *)t_cgroup_init,
	       .cgroup_set_weight = (void *)t_cgroup_set_weight,
	       .cgroup_set_bandwidth = (void *)t_cgroup_set_bandwidth, .init = (void *)t_init,
	       .name = "t");
