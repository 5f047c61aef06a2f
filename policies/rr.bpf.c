/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * rr.bpf.c - round-robin: all tasks in turn, for one slice each.
 *
 * One queue for all CPUs. A task that wakes up, or whose slice is used up, goes
 * to the end of it; a free CPU takes the first task that may run there. A task
 * alone on its CPU just gets the next slice.
 *
 * Good at: equal shares for tasks that always want to run, and a bound on every
 * wait: with n tasks on a CPU, n - 1 slices.
 * Bad at: interactive tasks among busy ones, which wait for the whole round and
 * get less than their share, since they seldom use up a slice; many equal jobs,
 * which all finish late and together; no task can be more important.
 *
 * A slice ends at the first tick after it is used up. Where switches cost time,
 * a slice of exactly one tick is not quite used up at that tick, and lasts two:
 * to be preempted at every tick, as xv6 does, set slice_ns to 1.
 *
 * @knob slice_ns ns 1 10000000000  slice (default 10 ms, as in report 5)
 * @priority queued when free
 * @latency wake-up within slice_ns
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @starvation-free yes  each queued task has its turn in a round, unless its mask changes before
 * @source report 5, section 4.1.1; xv6's scheduler
 *
 * Read next: include/scx/idle.h, then policies/priority.bpf.c, where some tasks are
 * more important.
 */
#include <scx/common.bpf.h>
#include <scx/idle.h>

char _license[] SEC("license") = "GPL";

#define RR_DSQ 0

const volatile u64 slice_ns = 10000000;

s32 BPF_STRUCT_OPS(rr_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return select_cpu_and_insert(p, prev_cpu, wake_flags, slice_ns);
}

void BPF_STRUCT_OPS(rr_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, RR_DSQ, slice_ns, enq_flags);
	kick_idle_cpu(p, enq_flags);
}

void BPF_STRUCT_OPS(rr_dispatch, s32 cpu, struct task_struct *prev)
{
	if (scx_bpf_dsq_move_to_local(RR_DSQ))
		return;
	/* Otherwise it would get the kernel's default slice, not the policy's. */
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED))
		scx_bpf_task_set_slice(prev, slice_ns);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(rr_init)
{
	return scx_bpf_create_dsq(RR_DSQ, -1);
}

SCX_OPS_DEFINE(rr_ops,
	       .select_cpu = (void *)rr_select_cpu,
	       .enqueue = (void *)rr_enqueue,
	       .dispatch = (void *)rr_dispatch,
	       .init = (void *)rr_init,
	       .name = "rr");
