/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * other_queues_clock.bpf.c - two queues, each in the order of virtual times of its own; a task that wakes up begins at the time of one of them,
 * whichever it waits in.
 *
 * @breaks stall
 * @virtual-time yes
 */
#include "bug.h"

#define QUEUE_OF(p) ((u32)(p)->pid % 2)
#define CLOCK_OF(p) 1 /* in place of QUEUE_OF(p) */

static u64 vtime_now[2] = { 0, 3600000000000 }; /* ns, weighted: nothing that can be compared */

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 vtime = p->scx.dsq_vtime;

	if ((enq_flags & SCX_ENQ_WAKEUP) &&
	    time_before(vtime, vtime_now[CLOCK_OF(p)] - SCX_SLICE_DFL))
		vtime = vtime_now[CLOCK_OF(p)] - SCX_SLICE_DFL;
	scx_bpf_dsq_insert_vtime(p, SHARED + QUEUE_OF(p), SCX_SLICE_DFL, vtime, enq_flags);
	kick_idle_for(p);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 queue = bpf_get_prandom_u32() % 2;

	if (!scx_bpf_dsq_move_to_local(SHARED + queue, 0))
		scx_bpf_dsq_move_to_local(SHARED + !queue, 0);
}

void BPF_STRUCT_OPS(bug_running, struct task_struct *p)
{
	if (time_before(vtime_now[QUEUE_OF(p)], p->scx.dsq_vtime))
		vtime_now[QUEUE_OF(p)] = p->scx.dsq_vtime;
}

void BPF_STRUCT_OPS(bug_stopping, struct task_struct *p, bool runnable)
{
	p->scx.dsq_vtime += (SCX_SLICE_DFL - p->scx.slice) * 100 / p->scx.weight;
}

void BPF_STRUCT_OPS(bug_enable, struct task_struct *p)
{
	p->scx.dsq_vtime = vtime_now[QUEUE_OF(p)];
}

#define MORE_OPS .running = (void *)bug_running, .stopping = (void *)bug_stopping, \
		 .enable = (void *)bug_enable,

#define NR_SHARED 2
#include "bug_ops.h"
