/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * group_left_out.bpf.c - tasks are in groups with a queue each; a group is listed as it gets its first task, and
 * no longer once a CPU has found its queue empty: a task that another CPU queues in between is in no listed group.
 *
 * @breaks stall
 * @interleaved
 */
#include "bug.h"

#define NR_GROUPS 4
#define NR_NUMBERED NR_GROUPS

static u64 listed; /* a bit for each group */

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;

	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 group = (u32)p->pid % NR_GROUPS;

	scx_bpf_dsq_insert(p, NUMBERED + group, SCX_SLICE_DFL, enq_flags);
	if (!(READ_ONCE(listed) >> group & 1))
		__sync_fetch_and_or(&listed, 1ULL << group);
	kick_idle_for(p);
	scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_IDLE);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 first = bpf_get_prandom_u32() % NR_GROUPS, i;

	bpf_for(i, 0, NR_GROUPS) {
		u32 group = (first + i) % NR_GROUPS;

		if (!(READ_ONCE(listed) >> group & 1))
			continue;
		if (scx_bpf_dsq_move_to_local(NUMBERED + group, 0))
			return;
		if (scx_bpf_dsq_nr_queued(NUMBERED + group))
			continue; /* of other CPUs */
		__sync_fetch_and_and(&listed, ~(1ULL << group));
	}
}

#include "bug_ops.h"
