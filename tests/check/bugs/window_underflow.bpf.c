/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * window_underflow.bpf.c - the oldest time that is allowed is now minus a window, and now begins at 0.
 *
 * @breaks stall
 * @work-conserving yes  so it says
 */
#include "bug.h"

static u64 vtime_now;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 vtime = p->scx.dsq_vtime, oldest = vtime_now - 100 * SCX_SLICE_DFL;

	if (vtime < oldest)
		vtime = oldest;
	p->scx.dsq_vtime = vtime;
	scx_bpf_dsq_insert_vtime(p, SHARED, SCX_SLICE_DFL, vtime, enq_flags);
	kick_idle_for(p);
}

void BPF_STRUCT_OPS(bug_running, struct task_struct *p)
{
	if (p->scx.dsq_vtime < -(1ULL << 40) && vtime_now < p->scx.dsq_vtime)
		vtime_now = p->scx.dsq_vtime;
}

void BPF_STRUCT_OPS(bug_stopping, struct task_struct *p, bool runnable)
{
	p->scx.dsq_vtime += (SCX_SLICE_DFL - p->scx.slice) * 100 / p->scx.weight;
}

void BPF_STRUCT_OPS(bug_enable, struct task_struct *p)
{
	p->scx.dsq_vtime = vtime_now;
}

#define MORE_OPS .running = (void *)bug_running, .stopping = (void *)bug_stopping, \
		 .enable = (void *)bug_enable,

#include "bug_ops.h"
