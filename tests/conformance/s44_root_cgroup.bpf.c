/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S44: every task is in a cgroup; on a host that makes none, in the root. */
#include "conform.h"

#define ROOT 1

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} stored SEC(".maps");

static u64 nr_init, nr_root_first, nr_weight, nr_before_its_task, nr_stored;
static u64 nr_found, nr_none, nr_ancestor, nr_exit;
static u64 nr_known;

s32 BPF_STRUCT_OPS_SLEEPABLE(t_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	u64 *v = bpf_cgrp_storage_get(&stored, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!v)
		return -ENOMEM;
	*v = 7;
	nr_known++;
	if (cgrp->level)
		return 0;
	nr_init++;
	nr_root_first += nr_known == 1 && cgrp->kn->id == ROOT;
	nr_weight = args->weight;
	return 0;
}

void BPF_STRUCT_OPS(t_cgroup_exit, struct cgroup *cgrp)
{
	nr_exit += !cgrp->level;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	/* Linux's verifier does not trust the pointer itself. */
	struct cgroup *cgrp = bpf_cgroup_from_id(args->cgroup->kn->id);
	u64 *v;

	if (!cgrp)
		return -ENOENT;
	v = bpf_cgrp_storage_get(&stored, cgrp, 0, 0);
	if (is_named(p, 'a'))
		nr_before_its_task += v && *v == 7;
	bpf_cgroup_release(cgrp);
	return 0;
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	struct cgroup *cgrp, *other;
	u64 *v;

	if (!is_named(p, 'a'))
		return;
	cgrp = scx_bpf_task_cgroup(p);
	v = bpf_cgrp_storage_get(&stored, cgrp, 0, 0);
	nr_stored += v && *v == 7;
	other = bpf_cgroup_ancestor(cgrp, 0);
	if (other) {
		nr_ancestor += other->kn->id == ROOT;
		bpf_cgroup_release(other);
	}
	other = bpf_cgroup_ancestor(cgrp, cgrp->level + 1);
	if (other)
		bpf_cgroup_release(other);
	else
		nr_none++;
	other = bpf_cgroup_from_id(cgrp->kn->id);
	if (other) {
		nr_found += other == cgrp;
		bpf_cgroup_release(other);
	}
	other = bpf_cgroup_from_id(1ULL << 40);
	if (other)
		bpf_cgroup_release(other);
	else
		nr_none++;
	bpf_cgroup_release(cgrp);
	/* Linux does not print what is counted here. */
	if (!nr_root_first || !nr_before_its_task || nr_stored != nr_ancestor ||
	    nr_stored != nr_found || nr_none != 2 * nr_stored)
		scx_bpf_error("root %llu task %llu stored %llu ancestor %llu found %llu none %llu",
			      nr_root_first, nr_before_its_task, nr_stored, nr_ancestor, nr_found,
			      nr_none);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_init);
	TELL(nr_root_first);
	TELL(nr_weight);
	TELL(nr_before_its_task);
	TELL(nr_stored);
	TELL(nr_ancestor);
	TELL(nr_found);
	TELL(nr_none);
	TELL(nr_exit);
}

SCX_OPS_DEFINE(t_ops, .cgroup_init = (void *)t_cgroup_init,
	       .cgroup_exit = (void *)t_cgroup_exit,
	       .init_task = (void *)t_init_task, .running = (void *)t_running,
	       .exit = (void *)t_exit, .name = "t");
