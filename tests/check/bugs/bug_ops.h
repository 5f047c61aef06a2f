/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * bug_ops.h - the callbacks that the policies of this folder share: one queue, from
 * which each CPU takes.
 *
 * A policy replaces what is its bug: it defines OWN_SELECT_CPU, OWN_ENQUEUE, OWN_DISPATCH
 * or OWN_INIT, and the function, before it includes this. Queues: SHARED, NR_SHARED of them, and
 * NR_NUMBERED from NUMBERED on, such as one for each CPU. MORE_OPS are further members.
 */
#ifndef NR_SHARED
#define NR_SHARED 1
#endif
#ifndef NR_NUMBERED
#define NR_NUMBERED 0
#endif

#ifndef OWN_SELECT_CPU
/*
 * Without SCX_WAKE_SYNC: two tasks that wake each other would stay in one CPU's local queue,
 * and one in the shared queue that may run only there would never be taken.
 */
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
	return cpu;
}
#endif

#ifndef OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}
#endif

#ifndef OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(SHARED, 0);
}
#endif

#ifndef OWN_INIT
s32 BPF_STRUCT_OPS_SLEEPABLE(bug_init)
{
	s32 i, err = 0;

	bpf_for(i, 0, NR_SHARED)
		if (!err)
			err = scx_bpf_create_dsq(SHARED + i, -1);
	bpf_for(i, 0, NR_NUMBERED)
		if (!err)
			err = scx_bpf_create_dsq(NUMBERED + i, -1);
	return err;
}
#endif

#ifndef MORE_OPS
#define MORE_OPS
#endif

SCX_OPS_DEFINE(bug_ops, .select_cpu = (void *)bug_select_cpu,
	       .enqueue = (void *)bug_enqueue, .dispatch = (void *)bug_dispatch,
	       .init = (void *)bug_init, MORE_OPS .name = "bug");
