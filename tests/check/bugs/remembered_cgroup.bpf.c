/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * remembered_cgroup.bpf.c - a queue for each cgroup, which is looked at while tasks of that cgroup are counted; a task
 * that has moved is counted in its new one, and queued for its first.
 *
 * @breaks stall
 */
#include "bug.h"
#include <scx/task_ctx.h>

#define NR_CGROUPS 4
#define NR_NUMBERED NR_CGROUPS

struct task_ctx {
	u32 first, counted; /* cgroups */
	bool is_counted;
};
DEFINE_TASK_CTX(struct task_ctx);

static s64 nr_queued[NR_CGROUPS];
static u32 nr_looks; /* each begins at another queue */

static u32 index_of(struct cgroup *cgrp)
{
	return cgrp->kn->id % NR_CGROUPS;
}

static void leave(struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc && tc->is_counted)
		__sync_fetch_and_sub(&nr_queued[tc->counted % NR_CGROUPS], 1);
	if (tc)
		tc->is_counted = false;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);

	if (!tc)
		return;
	tc->counted = index_of(cgrp);
	tc->is_counted = true;
	bpf_cgroup_release(cgrp);
	__sync_fetch_and_add(&nr_queued[tc->counted % NR_CGROUPS], 1);
	scx_bpf_dsq_insert(p, NUMBERED + tc->first, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 first = ++nr_looks, i;

	bpf_for(i, 0, NR_CGROUPS) {
		u32 at = (first + i) % NR_CGROUPS;

		if (nr_queued[at] > 0 && scx_bpf_dsq_move_to_local(NUMBERED + at, 0))
			return;
	}
}

void BPF_STRUCT_OPS(bug_dequeue, struct task_struct *p, u64 deq_flags)
{
	leave(p);
}

void BPF_STRUCT_OPS(bug_running, struct task_struct *p)
{
	leave(p);
}

s32 BPF_STRUCT_OPS(bug_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tc = create_task_ctx(p);

	if (!tc)
		return -ENOMEM;
	tc->first = index_of(args->cgroup);
	return 0;
}

#define MORE_OPS .dequeue = (void *)bug_dequeue, .running = (void *)bug_running, \
		 .init_task = (void *)bug_init_task,

#include "bug_ops.h"
