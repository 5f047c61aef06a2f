/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kthreads_without_end.bpf.c - a kernel thread that is bound to a CPU goes to the head of its local queue, and is never
 * interrupted: most run for some microseconds. One does not.
 *
 * @breaks stall
 * @shown-by thread
 */
#include "bug.h"

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	if ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags | SCX_ENQ_HEAD);
		return;
	}
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#include "bug_ops.h"
