/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * weight_in_bounds.bpf.c - shares by weight, of which no more counts than lies from 50 to 200.
 *
 * @knob slice_ns ns 1 10000000000  slice (default 5 ms)
 * @shares weight within slice_ns
 */
#include "bugs/bug.h"

const volatile u64 slice_ns = 5000000;

static u64 vtime_now;

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, SHARED, slice_ns, p->scx.dsq_vtime, enq_flags);
	kick_idle_for(p);
}

void BPF_STRUCT_OPS(bug_running, struct task_struct *p)
{
	if (time_before(vtime_now, p->scx.dsq_vtime))
		vtime_now = p->scx.dsq_vtime;
}

void BPF_STRUCT_OPS(bug_stopping, struct task_struct *p, bool runnable)
{
	u64 weight = p->scx.weight;

#ifndef ALL_WEIGHTS
	if (weight < 50)
		weight = 50;
	if (weight > 200)
		weight = 200;
#endif
	p->scx.dsq_vtime += (slice_ns - p->scx.slice) * 100 / weight;
}

void BPF_STRUCT_OPS(bug_enable, struct task_struct *p)
{
	p->scx.dsq_vtime = vtime_now;
}

#define MORE_OPS .running = (void *)bug_running, .stopping = (void *)bug_stopping, \
		 .enable = (void *)bug_enable,

#include "bugs/bug_ops.h"
