/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* bug.h - what each policy of this folder begins with; bug_ops.h is its end. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

#define SHARED 1
#define OTHER 2		/* the second of them */
#define NUMBERED 100

static inline void kick_idle_for(struct task_struct *p)
{
	s32 cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}
