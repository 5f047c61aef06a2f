/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * forked_alone.bpf.c - a task has what is kept of it from its fork on; one that was there before the policy has none,
 * and is not queued.
 *
 * @breaks stall
 * @shown-by reload
 */
#include "bug.h"
#include <scx/task_ctx.h>

struct task_ctx {
	u64 nr_queued;
};
DEFINE_TASK_CTX(struct task_ctx);

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	tc->nr_queued++;
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

s32 BPF_STRUCT_OPS(bug_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	if (!args->fork)
		return 0;
	return create_task_ctx(p) ? 0 : -ENOMEM;
}

#define MORE_OPS .init_task = (void *)bug_init_task,

#include "bug_ops.h"
