/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S34: compares its clocks, prints all conversions. */
#include "conform.h"

static u64 nr_backward, nr_apart, last_ns, exec_ns;

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	u64 now_ns = scx_bpf_now();
	u64 ktime_ns = bpf_ktime_get_ns();

	nr_backward += now_ns < last_ns;
	nr_apart += ktime_ns - now_ns > 1000000;
	last_ns = now_ns;
}

void BPF_STRUCT_OPS(t_stopping, struct task_struct *p, bool runnable)
{
	exec_ns = p->se.sum_exec_runtime;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	bpf_printk("%d %u %x %s%c", -5, 7u, 255u, "text", '!');
	bpf_printk("%lld %llu %llx", -5LL, ~0ULL, 1ULL << 40);
	bpf_printk("[%5d] [%-5d] [%05d] 100%%", 42, 42, -42);
	return 0;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_backward);
	TELL(nr_apart);
	TELL(exec_ns);
}

SCX_OPS_DEFINE(t_ops, .running = (void *)t_running,
	       .stopping = (void *)t_stopping, .init = (void *)t_init,
	       .exit = (void *)t_exit, .name = "t");
