/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * fifo.bpf.c - first in, first out: a task runs until it blocks.
 *
 * One queue for all CPUs. A task that wakes up goes to the end of it, or straight
 * to a CPU that is idle; a CPU that becomes free takes the first task that may
 * run there. No task is ever preempted: slices are endless.
 *
 * Good at: batches of equal jobs. It switches as seldom as a policy can, and jobs
 * of equal length that arrive together finish as early as possible on average.
 * Bad at: anything mixed. A short job behind a long one waits for all of it (the
 * convoy), an interactive task hardly runs beside a busy one, and a task that never
 * blocks starves the rest; Linux unloads the policy when one of them has waited
 * for 30 seconds.
 *
 * @priority queued when free
 * @work-conserving yes  a queued task is taken by the first CPU that is free
 * @starvation-free no  a task that never blocks keeps its CPU
 * @source reports 2 and 4 (SCHED_FIFO at one priority); the textbooks' FCFS
 *
 * Read next: core/enqueue.c, where what is inserted here ends up.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

#define FIFO_DSQ 0

s32 BPF_STRUCT_OPS(fifo_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	/* Not behind a waker that continues: another CPU is idle now. */
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
	return cpu;
}

void BPF_STRUCT_OPS(fifo_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu;

	scx_bpf_dsq_insert(p, FIFO_DSQ, SCX_SLICE_INF, enq_flags);
	if (enq_flags & SCX_ENQ_CPU_SELECTED)
		return;
	/* It yielded to a task that is bound here; another CPU may be idle. */
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

void BPF_STRUCT_OPS(fifo_dispatch, s32 cpu, struct task_struct *prev)
{
	if (scx_bpf_dsq_move_to_local(FIFO_DSQ))
		return;
	/* A task that yields while no other waits has lost its slice. */
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED))
		scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(fifo_init)
{
	return scx_bpf_create_dsq(FIFO_DSQ, -1);
}

SCX_OPS_DEFINE(fifo_ops,
	       .select_cpu = (void *)fifo_select_cpu,
	       .enqueue = (void *)fifo_enqueue,
	       .dispatch = (void *)fifo_dispatch,
	       .init = (void *)fifo_init,
	       /* A task that exits is not left behind one that runs without a slice. */
	       .flags = SCX_OPS_ENQ_EXITING,
	       .name = "fifo");
