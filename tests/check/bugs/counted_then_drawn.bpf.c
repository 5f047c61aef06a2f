/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * counted_then_drawn.bpf.c - a lottery: tickets are counted in one pass, and the winner is looked for in another. Where tasks have left in between, none has
 * won, and the CPU goes idle.
 *
 * @breaks work
 * @interleaved
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 nr_tickets = 0, winner;
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, SHARED, 0)
		nr_tickets += bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
	if (!nr_tickets)
		return;
	winner = bpf_get_prandom_u32() % nr_tickets;
	bpf_for_each(scx_dsq, p, SHARED, 0)
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr) && !winner--) {
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
			return;
		}
}

#include "bug_ops.h"
