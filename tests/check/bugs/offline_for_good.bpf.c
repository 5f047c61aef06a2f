/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * offline_for_good.bpf.c - a queue for each CPU, from which a CPU takes that is online; that it has come back is not
 * noted.
 *
 * @breaks stall
 * @shown-by offline
 */
#include "bug.h"

#define NR_NUMBERED 64

static bool is_offline[NR_NUMBERED];

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;

	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, NUMBERED + scx_bpf_task_cpu(p) % NR_NUMBERED, SCX_SLICE_DFL,
			   enq_flags);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	if (!is_offline[cpu % NR_NUMBERED])
		scx_bpf_dsq_move_to_local(NUMBERED + cpu % NR_NUMBERED, 0);
}

void BPF_STRUCT_OPS(bug_cpu_offline, s32 cpu)
{
	is_offline[cpu % NR_NUMBERED] = true;
}

void BPF_STRUCT_OPS(bug_cpu_online, s32 cpu) { }

#define MORE_OPS .cpu_offline = (void *)bug_cpu_offline, .cpu_online = (void *)bug_cpu_online,

#include "bug_ops.h"
