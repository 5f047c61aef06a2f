/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S44: cgroup_init is told weight and bandwidth, and a task of a group whose quota
 * is half of its period or less goes behind all others. A wrong number is an error.
 */
#include "conform.h"

#define QUEUE 7

static u64 limited; /* id of the cgroup */

s32 BPF_STRUCT_OPS_SLEEPABLE(t_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	if (args->bw_quota_us == ~0ULL)
		return 0;
	if (args->bw_quota_us != 20000 || args->bw_period_us != 50000 || args->weight != 300)
		return -22;
	limited = cgrp->kn->id;
	return 0;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);
	u64 vtime = cgrp->kn->id == limited;

	bpf_cgroup_release(cgrp);
	if (!limited)
		scx_bpf_error("no cgroup has a quota");
	scx_bpf_dsq_insert_vtime(p, QUEUE, SCX_SLICE_DFL, vtime, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch,
	       .cgroup_init = (void *)t_cgroup_init, .init = (void *)t_init,
	       .name = "t");
