/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * full_ring.bpf.c - pids wait in a ring of four; who comes when it is full is lost.
 *
 * @breaks stall
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define PLACES 4
static s32 ring[PLACES];
static u32 first, nr;

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (nr < PLACES)
		ring[(first + nr++) % PLACES] = p->pid;
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	if (!nr)
		return;
	p = bpf_task_from_pid(ring[first++ % PLACES]);
	nr--;
	if (!p)
		return;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
	bpf_task_release(p);
}

#include "bug_ops.h"
