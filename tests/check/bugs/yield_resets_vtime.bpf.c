/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * yield_resets_vtime.bpf.c - a task that yields begins anew with credit, each time.
 *
 * @breaks stall
 * @work-conserving yes  so it says
 */
#include "bug.h"

static u64 vtime_now;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, SHARED, SCX_SLICE_DFL, p->scx.dsq_vtime, enq_flags);
	kick_idle_for(p);
}

bool BPF_STRUCT_OPS(bug_yield, struct task_struct *from, struct task_struct *to)
{
	from->scx.slice = 0;
	from->scx.dsq_vtime = vtime_now - 2 * SCX_SLICE_DFL;
	return false;
}

void BPF_STRUCT_OPS(bug_running, struct task_struct *p)
{
	if (time_before(vtime_now, p->scx.dsq_vtime))
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
		 .yield = (void *)bug_yield, .enable = (void *)bug_enable,

#include "bug_ops.h"
