/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * owed.bpf.c - the task that has had least for its tickets runs next, also if it has only just come.
 */
#include <scx/common.bpf.h>
#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/task_attr.h>
#include <scx/task_ctx.h>

char _license[] SEC("license") = "GPL";

#define SHARED 0
#define SLICE_NS 10000000ULL
#define UNIT 1000ULL		/* virtual time is CPU time in parts of a ticket */

struct task_ctx {
	u64 exec_ns;
};
DEFINE_TASK_CTX(struct task_ctx);

static void charge(struct task_struct *p, struct task_ctx *tc)
{
	p->scx.dsq_vtime += exec_ns_since(p, &tc->exec_ns) * UNIT / task_tickets(p);
}

s32 BPF_STRUCT_OPS(owed_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_and_insert(p, prev_cpu, wake_flags, SLICE_NS);
}

void BPF_STRUCT_OPS(owed_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, SHARED, SLICE_NS, p->scx.dsq_vtime, enq_flags);
	kick_idle_cpu(p, enq_flags);
}

void BPF_STRUCT_OPS(owed_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);

	if (tc) {
		charge(prev, tc);
		/* It is in no queue, and may still be the one that has had least. */
		if (!is_queued_before(SHARED, cpu, prev->scx.dsq_vtime)) {
			scx_bpf_task_set_slice(prev, SLICE_NS);
			return;
		}
	}
	scx_bpf_dsq_move_to_local(SHARED);
}

void BPF_STRUCT_OPS(owed_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->exec_ns = p->se.sum_exec_runtime;
}

void BPF_STRUCT_OPS(owed_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		charge(p, tc);
}

s32 BPF_STRUCT_OPS(owed_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return create_task_ctx(p) ? 0 : -ENOMEM;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(owed_init)
{
	return scx_bpf_create_dsq(SHARED, -1);
}

SCX_OPS_DEFINE(owed_ops,
	       .select_cpu = (void *)owed_select_cpu,
	       .enqueue = (void *)owed_enqueue,
	       .dispatch = (void *)owed_dispatch,
	       .running = (void *)owed_running,
	       .stopping = (void *)owed_stopping,
	       .init_task = (void *)owed_init_task,
	       .init = (void *)owed_init,
	       .name = "owed");
