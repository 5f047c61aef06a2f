/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * full.bpf.c - three levels with cumulative allotments, which begin anew every 200 ms.
 *
 * A task that waits is not moved when that happens: the lowest level goes first once in 100 ms.
 */
#include <scx/common.bpf.h>
#include <scx/dsq.h>
#include <scx/idle.h>
#include <scx/task_ctx.h>

char _license[] SEC("license") = "GPL";

#define NR_LEVELS 3
#define QUANTUM_NS 10000000ULL
#define AGE_NS 100000000ULL
#define PERIOD_NS 200000000ULL

struct task_ctx {
	u32 level;   /* 0 is the highest */
	u64 used_ns; /* of its allotment there */
	u64 exec_ns;
	u64 period; /* in which that was */
};
DEFINE_TASK_CTX(struct task_ctx);

static u64 low_ns; /* when the lowest level last went first */

static u64 allotment_ns(u32 level)
{
	return level ? 2 * QUANTUM_NS : QUANTUM_NS;
}

static u64 slice_of(const struct task_ctx *tc)
{
	return tc->level == NR_LEVELS - 1 ? allotment_ns(tc->level) :
					    allotment_ns(tc->level) - tc->used_ns;
}

static void catch_up(struct task_ctx *tc)
{
	u64 period = scx_bpf_now() / PERIOD_NS;

	if (tc->period == period)
		return;
	tc->period = period;
	tc->level = 0;
	tc->used_ns = 0;
}

static void charge(struct task_struct *p, struct task_ctx *tc)
{
	tc->used_ns += exec_ns_since(p, &tc->exec_ns);
	catch_up(tc);
	if (tc->level == NR_LEVELS - 1 || tc->used_ns < allotment_ns(tc->level))
		return;
	tc->level++;
	tc->used_ns = 0;
}

static bool is_lowest_due(void)
{
	return scx_bpf_now() - low_ns >= AGE_NS && scx_bpf_dsq_nr_queued(NR_LEVELS - 1) > 0;
}

s32 BPF_STRUCT_OPS(full_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		catch_up(tc);
	return tc ? select_cpu_and_insert(p, prev_cpu, wake_flags, slice_of(tc)) : prev_cpu;
}

void BPF_STRUCT_OPS(full_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		catch_up(tc);
	scx_bpf_dsq_insert(p, tc ? tc->level : 0, tc ? slice_of(tc) : QUANTUM_NS, enq_flags);
	kick_idle_cpu(p, enq_flags);
}

void BPF_STRUCT_OPS(full_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_ctx *tc = prev_task_ctx(prev, cpu);
	u32 nr_levels = NR_LEVELS, i;

	if (is_lowest_due() && scx_bpf_dsq_move_to_local(NR_LEVELS - 1)) {
		low_ns = scx_bpf_now();
		return;
	}
	if (tc) {
		charge(prev, tc);
		nr_levels = tc->level + 1;
	}
	bpf_for(i, 0, nr_levels) {
		if (scx_bpf_dsq_move_to_local(i)) {
			if (i == NR_LEVELS - 1)
				low_ns = scx_bpf_now();
			return;
		}
	}
	if (tc)
		scx_bpf_task_set_slice(prev, slice_of(tc));
}

void BPF_STRUCT_OPS(full_tick, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (!tc)
		return;
	charge(p, tc);
	if (is_any_queued(0, tc->level) || (tc->level < NR_LEVELS - 1 && is_lowest_due()))
		scx_bpf_task_set_slice(p, 0);
}

void BPF_STRUCT_OPS(full_running, struct task_struct *p)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		tc->exec_ns = p->se.sum_exec_runtime;
}

void BPF_STRUCT_OPS(full_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tc = task_ctx(p);

	if (tc)
		charge(p, tc);
}

s32 BPF_STRUCT_OPS(full_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return create_task_ctx(p) ? 0 : -ENOMEM;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(full_init)
{
	return create_dsqs(NR_LEVELS);
}

SCX_OPS_DEFINE(full_ops,
	       .select_cpu = (void *)full_select_cpu,
	       .enqueue = (void *)full_enqueue,
	       .dispatch = (void *)full_dispatch,
	       .tick = (void *)full_tick,
	       .running = (void *)full_running,
	       .stopping = (void *)full_stopping,
	       .init_task = (void *)full_init_task,
	       .init = (void *)full_init,
	       .name = "full");
