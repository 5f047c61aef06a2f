/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * charges_whole_slices.bpf.c - a task is charged for parts of 5 ms; what is less is charged to no task.
 *
 * @breaks stall
 * @virtual-time yes
 */
#include "bug.h"

#define CHARGED(ns) ((ns) / 5000000 * 5000000)

static u64 vtime_now;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 vtime = p->scx.dsq_vtime;

	if (time_before(vtime, vtime_now - SCX_SLICE_DFL))
		vtime = vtime_now - SCX_SLICE_DFL;
	scx_bpf_dsq_insert_vtime(p, SHARED, SCX_SLICE_DFL, vtime, enq_flags);
	kick_idle_for(p);
}

void BPF_STRUCT_OPS(bug_running, struct task_struct *p)
{
	if (time_before(vtime_now, p->scx.dsq_vtime))
		vtime_now = p->scx.dsq_vtime;
}

void BPF_STRUCT_OPS(bug_stopping, struct task_struct *p, bool runnable)
{
	p->scx.dsq_vtime += CHARGED(SCX_SLICE_DFL - p->scx.slice) * 100 / p->scx.weight;
}

void BPF_STRUCT_OPS(bug_enable, struct task_struct *p)
{
	p->scx.dsq_vtime = vtime_now;
}

#define MORE_OPS .running = (void *)bug_running, .stopping = (void *)bug_stopping, \
		 .enable = (void *)bug_enable,

#include "bug_ops.h"
