/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S49: where a task may run is what it asked for and its cgroup has; what is wrong is an error. */
#include "conform.h"

/* Bit 0 is CPU 0. */
static u32 mask_of(struct task_struct *p)
{
	return bpf_cpumask_test_cpu(0, p->cpus_ptr) | bpf_cpumask_test_cpu(1, p->cpus_ptr) << 1;
}

static u32 expected(struct task_struct *p)
{
	switch (p->comm[0]) {
	case 'l': /* in left */
	case 'c': /* its child */
	case 'w': /* in a group of left that has no CPUs of its own */
		return 1;
	case 'r': /* in right */
	case 'o': /* too, and has asked for CPU 0 alone */
	case 'k': /* has asked for CPU 1 alone */
		return 2;
	}
	return 3; /* b: in a group without, beside groups with CPUs; f: in none */
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	u32 mask = mask_of(p);

	if (p->comm[1])
		return; /* of Linux */
	if (mask != expected(p))
		scx_bpf_error("%s may run on 0x%x", p->comm, mask);
	if (p->nr_cpus_allowed != (mask == 3) + 1)
		scx_bpf_error("%s may run on %d CPUs", p->comm, p->nr_cpus_allowed);
}

SCX_OPS_DEFINE(t_ops, .running = (void *)t_running, .name = "t");
