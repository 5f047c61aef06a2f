/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S40: the call's first form, of ops.cpu_release() alone: not for the task that stops there. */
#include "conform.h"

#define QUEUE 7
#define SLICE_NS 8000000

static u64 nr_reenqueued_a, nr_reenqueued_b, nr_there;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (!(enq_flags & SCX_ENQ_REENQ)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE_NS, enq_flags);
		return;
	}
	nr_reenqueued_a += is_named(p, 'a');
	nr_reenqueued_b += is_named(p, 'b');
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

void BPF_STRUCT_OPS(t_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	nr_there += scx_bpf_reenqueue_local___v1();
}

/* Linux cannot show what is counted here, so a wrong number is also an error. */
void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	if (is_named(p, 'b') && (nr_reenqueued_a || nr_reenqueued_b != 1 || nr_there < 2))
		scx_bpf_error("%llu of a, %llu of b, %llu there", nr_reenqueued_a, nr_reenqueued_b,
			      nr_there);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_reenqueued_a);
	TELL(nr_reenqueued_b);
	TELL(nr_there);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .dispatch = (void *)t_dispatch,
	       .running = (void *)t_running, .cpu_release = (void *)t_cpu_release,
	       .init = (void *)t_init, .exit = (void *)t_exit, .name = "t");
