/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kick_after_log.bpf.c - a task is queued for a CPU, all in turn, then written into a log, then that CPU is kicked; where the log cannot be written, it
 * is not kicked.
 *
 * @breaks stall
 * @shown-by fail
 */
#include "bug.h"

#define NR_NUMBERED 64

static u32 nr_queued;

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 64);
	__type(value, s32);
} queued_last SEC(".maps");

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = nr_queued++ % scx_bpf_nr_cpu_ids(), pid = p->pid;

	if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		cpu = scx_bpf_task_cpu(p);
	scx_bpf_dsq_insert(p, NUMBERED + (u32)cpu % NR_NUMBERED, SCX_SLICE_DFL, enq_flags);
	if (bpf_map_push_elem(&queued_last, &pid, BPF_EXIST))
		return;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(NUMBERED + (u32)cpu % NR_NUMBERED, 0);
}

#include "bug_ops.h"
