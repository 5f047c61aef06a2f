/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S46: what ran waits first of all if it has slice left, and otherwise where the policy
 * puts it. Linux cannot show what is counted here, so a wrong number is also an error.
 */
#include "conform.h"

#define QUEUE 7
#define SLICE_NS 20000000

static u64 nr_released, nr_acquired, nr_stopped, nr_enqueued;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	nr_enqueued += is_named(p, 'a');
	scx_bpf_dsq_insert(p, QUEUE, SLICE_NS, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

void BPF_STRUCT_OPS(t_stopping, struct task_struct *p, bool runnable)
{
	nr_stopped += runnable && is_named(p, 'a');
}

void BPF_STRUCT_OPS(t_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	nr_released++;
	if (cpu || args->reason != SCX_CPU_PREEMPT_RT)
		scx_bpf_error("CPU %d released for %d", cpu, args->reason);
}

void BPF_STRUCT_OPS(t_cpu_acquire, s32 cpu, struct scx_cpu_acquire_args *args)
{
	nr_acquired++;
}

/*
 * The last task begins when the others have ended. In Linux a CPU that was released under the policy
 * before this one is acquired once more: the mark of its queue (cpu_released) outlives a policy.
 */
void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	bool are_pairs = nr_acquired - nr_released <= 1;

	if (is_named(p, 'z') && (!are_pairs || !nr_released || !nr_stopped))
		scx_bpf_error("%llu released, %llu acquired, %llu stopped", nr_released,
			      nr_acquired, nr_stopped);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_released);
	TELL(nr_acquired);
	TELL(nr_stopped);
	TELL(nr_enqueued);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .stopping = (void *)t_stopping,
	       .running = (void *)t_running,
	       .cpu_release = (void *)t_cpu_release,
	       .cpu_acquire = (void *)t_cpu_acquire, .init = (void *)t_init,
	       .exit = (void *)t_exit, .name = "t");
