/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * knob_without_queue.bpf.c - with a knob at 0 there is no queue for tasks that a waker who goes to sleep has woken; one of the places that use
 * it does not ask.
 *
 * @breaks error
 * @knob has_sync_queue bool 0 1  tasks that are woken so have a queue of their own (default 1)
 */
#include "bug.h"
#include <scx/task_ctx.h>

const volatile bool has_sync_queue = 1;

struct task_ctx {
	bool is_sync;
};
DEFINE_TASK_CTX(struct task_ctx);

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->is_sync = wake_flags & SCX_WAKE_SYNC;
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);
	bool is_sync = tc && tc->is_sync && (enq_flags & SCX_ENQ_WAKEUP);

	scx_bpf_dsq_insert(p, is_sync ? OTHER : SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	static u32 nr_looks;
	bool is_sync_first = has_sync_queue && __sync_fetch_and_add(&nr_looks, 1) % 2;

	if (is_sync_first && scx_bpf_dsq_move_to_local(OTHER, 0))
		return;
	if (!scx_bpf_dsq_move_to_local(SHARED, 0) && has_sync_queue)
		scx_bpf_dsq_move_to_local(OTHER, 0);
}

#define OWN_INIT
s32 BPF_STRUCT_OPS_SLEEPABLE(bug_init)
{
	s32 err = scx_bpf_create_dsq(SHARED, -1);

	return err || !has_sync_queue ? err : scx_bpf_create_dsq(OTHER, -1);
}

s32 BPF_STRUCT_OPS(bug_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return create_task_ctx(p) ? 0 : -ENOMEM;
}

#define MORE_OPS .init_task = (void *)bug_init_task,

#include "bug_ops.h"
