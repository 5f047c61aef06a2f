/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * mask_remembered.bpf.c - each task has a CPU whose queue it waits in, chosen once: where its mask is
 * changed later, no CPU takes it any more.
 *
 * Masks that stay as they are break nothing: it needs a change from outside.
 */
#include "bugs/bug.h"

#define NR_PIDS 1024
#define NR_NUMBERED 8

static s32 home_of[NR_PIDS]; /* CPU + 1; 0: not chosen */

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 *home = &home_of[(u32)p->pid % NR_PIDS];

	if (!*home)
		*home = (s32)bpf_cpumask_first(p->cpus_ptr) + 1;
	scx_bpf_dsq_insert(p, NUMBERED + (u64)(*home - 1), SCX_SLICE_DFL, enq_flags);
	scx_bpf_kick_cpu(*home - 1, SCX_KICK_IDLE);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(NUMBERED + (u64)cpu, 0);
}

#include "bugs/bug_ops.h"
