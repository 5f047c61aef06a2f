/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * late_idle_flag.bpf.c - each CPU has a queue, and says that it is idle after it has looked
 * there, not before: a task that another CPU queues in between is kicked for by none.
 *
 * It breaks only where CPUs interleave: see test_races.py.
 */
#include "bugs/bug.h"

#define QUEUE(cpu) (16 + (cpu))
#define CPUS_MAX 64

u32 is_idle[CPUS_MAX];
u64 next_cpu;

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

/* Tasks go to all CPUs in turn; the first of a queue wakes its CPU up. */
#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	bool is_first;
	s32 cpu = __sync_fetch_and_add(&next_cpu, 1) % scx_bpf_nr_cpu_ids();

	if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		cpu = scx_bpf_task_cpu(p);
	is_first = !scx_bpf_dsq_nr_queued(QUEUE(cpu));
	scx_bpf_dsq_insert(p, QUEUE(cpu), SCX_SLICE_DFL, enq_flags);
	if (is_first && cpu >= 0 && cpu < CPUS_MAX && READ_ONCE(is_idle[cpu]))
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	bool is_taken = scx_bpf_dsq_move_to_local(QUEUE(cpu), 0);

	if (cpu >= 0 && cpu < CPUS_MAX)
		WRITE_ONCE(is_idle[cpu], !is_taken);
}

#define OWN_INIT
s32 BPF_STRUCT_OPS_SLEEPABLE(bug_init)
{
	s32 cpu, err = 0;

	bpf_for(cpu, 0, scx_bpf_nr_cpu_ids())
		err = err ?: scx_bpf_create_dsq(QUEUE(cpu), -1);
	return err;
}

#include "bugs/bug_ops.h"
