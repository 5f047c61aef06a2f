/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * slot_given_twice.bpf.c - a task has a slot from its fork on, with what is kept of it; the number of the next one is
 * read and written in two steps: of two tasks that are forked at once, both have one slot.
 *
 * @breaks race
 * @interleaved
 */
#include "bug.h"
#include <scx/task_ctx.h>

#define NR_SLOTS 1024

struct task_ctx {
	u32 slot;
};
DEFINE_TASK_CTX(struct task_ctx);

static u64 queued_ns[NR_SLOTS];
static u32 nr_slots;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		queued_ns[tc->slot % NR_SLOTS] = scx_bpf_now();
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

s32 BPF_STRUCT_OPS(bug_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tc = create_task_ctx(p);

	if (!tc)
		return -ENOMEM;
	tc->slot = READ_ONCE(nr_slots);
	WRITE_ONCE(nr_slots, tc->slot + 1);
	return 0;
}

#define MORE_OPS .init_task = (void *)bug_init_task,

#include "bug_ops.h"
