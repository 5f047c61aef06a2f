/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * levels.bpf.c - three levels, whose allotments begin anew with each wake-up; nothing bounds a wait.
 */
#include <scx/common.bpf.h>
#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/task_ctx.h>

char _license[] SEC("license") = "GPL";

#define NR_LEVELS 3
#define QUANTUM_NS 10000000ULL

struct task_ctx {
	u32 level;   /* 0 is the highest */
	u64 used_ns; /* of its allotment there */
	u64 exec_ns;
};
DEFINE_TASK_CTX(struct task_ctx);

static u64 allotment_ns(u32 level)
{
	return level ? 2 * QUANTUM_NS : QUANTUM_NS;
}

static u64 slice_of(const struct task_ctx *tc)
{
	return tc->level == NR_LEVELS - 1 ? allotment_ns(tc->level) :
					    allotment_ns(tc->level) - tc->used_ns;
}

static void charge(struct task_struct *p, struct task_ctx *tc)
{
	tc->used_ns += exec_ns_since(p, &tc->exec_ns);
	if (tc->level == NR_LEVELS - 1 || tc->used_ns < allotment_ns(tc->level))
		return;
	tc->level++;
	tc->used_ns = 0;
}

s32 BPF_STRUCT_OPS(levels_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->used_ns = 0; /* also in enqueue: a CPU that is the only one is not selected */
	return tc ? select_cpu_and_insert(p, prev_cpu, wake_flags, slice_of(tc)) : prev_cpu;
}

void BPF_STRUCT_OPS(levels_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc && enq_flags & SCX_ENQ_WAKEUP)
		tc->used_ns = 0;
	scx_bpf_dsq_insert(p, tc ? tc->level : 0, tc ? slice_of(tc) : QUANTUM_NS, enq_flags);
	kick_idle_cpu(p, enq_flags);
}

void BPF_STRUCT_OPS(levels_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);
	u32 nr_levels = NR_LEVELS, i;

	if (tc) {
		charge(prev, tc);
		nr_levels = tc->level + 1;
	}
	bpf_for(i, 0, nr_levels) {
		if (scx_bpf_dsq_move_to_local(i))
			return;
	}
	if (tc)
		scx_bpf_task_set_slice(prev, slice_of(tc));
}

void BPF_STRUCT_OPS(levels_tick, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	charge(p, tc);
	if (is_any_queued(0, tc->level))
		scx_bpf_task_set_slice(p, 0);
}

void BPF_STRUCT_OPS(levels_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->exec_ns = p->se.sum_exec_runtime;
}

void BPF_STRUCT_OPS(levels_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		charge(p, tc);
}

s32 BPF_STRUCT_OPS(levels_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return create_task_ctx(p) ? 0 : -ENOMEM;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(levels_init)
{
	return create_dsqs(NR_LEVELS);
}

SCX_OPS_DEFINE(levels_ops,
	       .select_cpu = (void *)levels_select_cpu,
	       .enqueue = (void *)levels_enqueue,
	       .dispatch = (void *)levels_dispatch,
	       .tick = (void *)levels_tick,
	       .running = (void *)levels_running,
	       .stopping = (void *)levels_stopping,
	       .init_task = (void *)levels_init_task,
	       .init = (void *)levels_init,
	       .name = "levels");
