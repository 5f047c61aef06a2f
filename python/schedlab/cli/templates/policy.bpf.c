/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * my_policy.bpf.c - everybody in turn, for a slice that grows with the weight.
 *
 * A start to change, which works as it is. One queue for all CPUs: a task that
 * wakes up, or whose slice is used up, goes to the end of it; a free CPU takes
 * the first task that may run there. A task of weight 200 (nice -3 or so) gets
 * twice the slice of one of weight 100 (nice 0).
 *
 * This comment is the policy's manual: say in five lines what the idea is, and
 * then, which is worth more, where it does badly.
 *
 * Good at: shares in proportion to weights, among tasks that always want to run.
 * Bad at: a task that sleeps often. It waits for everybody's slice at each
 * wake-up, and the heavier the others are the longer it waits.
 *
 * Lines that schedlab reads: a @knob is a number that can be set for a run, with
 * its unit and its bounds; --set my_policy.slice_ns=2ms sets it. What is said
 * after @work-conserving is held against every run: with yes, no CPU may be idle
 * beside a task that could run there.
 *
 * @knob slice_ns ns 1 1000000000  turn of a task of weight 100 (default 10 ms)
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @source name here whom the idea is from
 */
#include <scx/common.bpf.h>

/* Linux loads a scheduler only under a licence that is compatible with its own. */
char _license[] SEC("license") = "GPL";

/* The policy chooses the number of its queue; init creates it. */
#define SHARED_DSQ 0

/* Set from outside before the policy is loaded, and constant from then on. */
const volatile u64 slice_ns = 10000000;

/* What @p may run before its turn ends. No floating point: Linux has none here. */
static u64 turn_ns(const struct task_struct *p)
{
	return slice_ns * p->scx.weight / 100;
}

/*
 * select_cpu: @p wakes up. Name the CPU that it should run on. If that one is
 * idle, the task may go straight to its local queue, and enqueue is not called.
 */
s32 BPF_STRUCT_OPS(my_policy_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	/* Not behind a waker that may run on: another CPU is idle now. */
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, turn_ns(p), 0);
	return cpu;
}

/*
 * enqueue: @p wants to run and has no CPU. Put it where dispatch will find it.
 * Try scx_bpf_dsq_insert_vtime() here: the queue is then kept in the order of
 * the number that you give, such as a virtual time or a deadline.
 */
void BPF_STRUCT_OPS(my_policy_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu;

	scx_bpf_dsq_insert(p, SHARED_DSQ, turn_ns(p), enq_flags);
	if (enq_flags & SCX_ENQ_CPU_SELECTED)
		return;
	/* Nobody has looked for an idle CPU yet, and a queue wakes none by itself. */
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/*
 * dispatch: @cpu is free. Move a task to its local queue. @prev is who ran there
 * until now, or NULL; it is in no queue, even if it wants to run on.
 */
void BPF_STRUCT_OPS(my_policy_dispatch, s32 cpu, struct task_struct *prev)
{
	if (scx_bpf_dsq_move_to_local(SHARED_DSQ))
		return;
	/* Nobody else wants the CPU. Without this, prev gets the kernel's slice. */
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED))
		scx_bpf_task_set_slice(prev, turn_ns(prev));
}

/*
 * init: called once, before any task. Queues are created here, for any NUMA node
 * (-1). A negative result stops the policy from being loaded.
 */
s32 BPF_STRUCT_OPS_SLEEPABLE(my_policy_init)
{
	return scx_bpf_create_dsq(SHARED_DSQ, -1);
}

/*
 * What is not listed here is left to the kernel. Others that are often wanted:
 * .runnable and .quiescent (a task begins and ceases to want the CPU), .running
 * and .stopping (it gets it and leaves it), .tick, .init_task and .exit_task.
 */
SCX_OPS_DEFINE(my_policy_ops,
	       .select_cpu = (void *)my_policy_select_cpu,
	       .enqueue = (void *)my_policy_enqueue,
	       .dispatch = (void *)my_policy_dispatch,
	       .init = (void *)my_policy_init,
	       .name = "my_policy");
