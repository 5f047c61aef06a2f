/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * callers_cpu.bpf.c - which task runs on a CPU is kept for each; where a running task is changed from outside, ops.stopping() and ops.running() are called on
 * the CPU of the task that changes it, which is taken for its own.
 *
 * @breaks invariant
 * @invariant nr_strange == 0
 */
#include "bug.h"

#define NR_CPUS 64
#define CPU_OF(p) bpf_get_smp_processor_id() /* in place of scx_bpf_task_cpu(p) */

static s32 runs[NR_CPUS];
static u64 nr_strange;

void BPF_STRUCT_OPS(bug_running, struct task_struct *p)
{
	runs[(u32)CPU_OF(p) % NR_CPUS] = p->pid;
}

void BPF_STRUCT_OPS(bug_stopping, struct task_struct *p, bool runnable)
{
	if (runs[(u32)CPU_OF(p) % NR_CPUS] != p->pid)
		nr_strange++;
}

#define MORE_OPS .running = (void *)bug_running, .stopping = (void *)bug_stopping,

#include "bug_ops.h"
