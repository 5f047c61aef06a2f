/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * slots_not_freed.bpf.c - a task gets a slot as it comes, and gives none back as it exits.
 *
 * @breaks stall
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define N_SLOTS 16
static s32 slots[N_SLOTS];
static u32 n_slots;

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 i, has_slot = 0;

	bpf_for(i, 0, n_slots)
		has_slot |= slots[i] == p->pid;
	if (!has_slot)
		return;
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

void BPF_STRUCT_OPS(bug_enable, struct task_struct *p)
{
	if (n_slots < N_SLOTS)
		slots[n_slots++] = p->pid;
}

#define MORE_OPS .enable = (void *)bug_enable,

#include "bug_ops.h"
