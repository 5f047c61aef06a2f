/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * domain_of_offline.bpf.c - a CPU has a domain until it goes offline, and again from its first task on; a task wakes up in the domain of the CPU
 * where it was, which may be offline.
 *
 * @breaks error
 * @shown-by offline
 */
#include "bug.h"

#define NR_CPUS 64
#define NR_DOMAINS 2

static u32 domain_of[NR_CPUS]; /* + 1; 0: none */

#define OWN_SELECT_CPU
s32 BPF_STRUCT_OPS(bug_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool is_idle = false;

	if (!domain_of[(u32)prev_cpu % NR_CPUS])
		scx_bpf_error("CPU %d has no domain", prev_cpu);
	return scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);
}

void BPF_STRUCT_OPS(bug_running, struct task_struct *p)
{
	u32 cpu = scx_bpf_task_cpu(p);

	domain_of[cpu % NR_CPUS] = 1 + cpu % NR_DOMAINS;
}

void BPF_STRUCT_OPS(bug_cpu_online, s32 cpu) { }

void BPF_STRUCT_OPS(bug_cpu_offline, s32 cpu)
{
	domain_of[(u32)cpu % NR_CPUS] = 0;
}

#define OWN_INIT
s32 BPF_STRUCT_OPS_SLEEPABLE(bug_init)
{
	u32 cpu;

	bpf_for(cpu, 0, NR_CPUS)
		domain_of[cpu] = 1 + cpu % NR_DOMAINS;
	return scx_bpf_create_dsq(SHARED, -1);
}

#define MORE_OPS .running = (void *)bug_running, \
		 .cpu_online = (void *)bug_cpu_online, .cpu_offline = (void *)bug_cpu_offline,

#include "bug_ops.h"
