/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S50: a task that cannot run at once comes back. Linux does not show what is counted here, so a
 * wrong number is an error as well.
 */
#include "conform.h"

#ifndef S50_FLAG
#define S50_FLAG SCX_ENQ_IMMED
#endif
#ifndef S50_OPS_FLAGS
#define S50_OPS_FLAGS 0
#endif

#define QUEUE 7
/* SCX_TASK_REENQ_IMMED, SCX_TASK_REENQ_PREEMPTED: why it is enqueued anew. */
#define REASON(p) ((p)->scx.flags >> 12 & 3)
#define REASON_IMMED 2
#define REASON_PREEMPTED 3

static u64 nr_first, nr_back, nr_a, nr_b, nr_h;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (!(enq_flags & SCX_ENQ_REENQ)) {
		nr_first++;
		if (REASON(p))
			scx_bpf_error("%s: reason %u", p->comm, REASON(p));
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, S50_FLAG);
		return;
	}
	/* A real-time task of Linux came between: it goes on after that. */
	if (REASON(p) == REASON_PREEMPTED) {
		scx_bpf_dsq_insert(p, QUEUE, 0, SCX_ENQ_HEAD);
		return;
	}
	if (REASON(p) != REASON_IMMED)
		scx_bpf_error("%s comes back for reason %u", p->comm, REASON(p));
	nr_back++;
	nr_a += is_named(p, 'a');
	nr_b += is_named(p, 'b');
	nr_h += is_named(p, 'h');
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_DFL, 0);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

/* a and b came while h ran; h, when its slice was over, as a was next. z found an idle CPU. */
void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	if (is_named(p, 'z') && (nr_a != 1 || nr_b != 1 || nr_h != 1))
		scx_bpf_error("%llu of a, %llu of b, %llu of h came back", nr_a, nr_b, nr_h);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	struct scx_event_stats events = { };

	__COMPAT_scx_bpf_events(&events, sizeof(events));
	TELL(nr_first);
	TELL(nr_back);
	bpf_printk("count nr_events %lld", events.SCX_EV_REENQ_IMMED);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .running = (void *)t_running,
	       .init = (void *)t_init, .exit = (void *)t_exit,
	       .flags = S50_OPS_FLAGS, .name = "t");
