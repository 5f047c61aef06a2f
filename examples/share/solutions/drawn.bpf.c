/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * drawn.bpf.c - a lottery: right in the long run, by chance in a short one.
 */
#include <scx/common.bpf.h>
#include <scx/idle.h>
#include <scx/task_attr.h>
#include <scx/task_ctx.h>

char _license[] SEC("license") = "GPL";

#define SHARED 0
#define SLICE_NS 10000000ULL

s32 BPF_STRUCT_OPS(drawn_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_and_insert(p, prev_cpu, wake_flags, SLICE_NS);
}

void BPF_STRUCT_OPS(drawn_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SHARED, SLICE_NS, enq_flags);
	kick_idle_cpu(p, enq_flags);
}

void BPF_STRUCT_OPS(drawn_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 own = may_continue(prev, cpu) ? task_tickets(prev) : 0;
	u64 total = own, winner;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, SHARED, 0)
		total += task_tickets(p);
	if (!total)
		return;
	winner = bpf_get_prandom_u32() % total;
	if (winner < own) {
		scx_bpf_task_set_slice(prev, SLICE_NS);
		return;
	}
	winner -= own;
	bpf_for_each(scx_dsq, p, SHARED, 0) {
		u64 tickets = task_tickets(p);

		if (winner < tickets) {
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
			return;
		}
		winner -= tickets;
	}
}

s32 BPF_STRUCT_OPS_SLEEPABLE(drawn_init)
{
	return scx_bpf_create_dsq(SHARED, -1);
}

SCX_OPS_DEFINE(drawn_ops,
	       .select_cpu = (void *)drawn_select_cpu,
	       .enqueue = (void *)drawn_enqueue,
	       .dispatch = (void *)drawn_dispatch,
	       .init = (void *)drawn_init,
	       .name = "drawn");
