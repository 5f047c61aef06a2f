/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S48: what a policy is told of its CPU, and that it gets what it asks for: from the first
 * tick of b on the clock is as slow as can be. What is expected are knobs, since Linux
 * cannot show what is counted here.
 */
#include "conform.h"

const volatile u64 capacity = 1024, slow = 1024;
static u64 nr_right;

static void expect(u64 found, u64 expected)
{
	if (found != expected)
		scx_bpf_error("%llu in place of %llu", found, expected);
	else
		nr_right++;
}

void BPF_STRUCT_OPS(t_tick, struct task_struct *p)
{
	if (!is_named(p, 'b') || nr_right)
		return;
	expect(scx_bpf_cpuperf_cap(0), capacity);
	expect(scx_bpf_cpuperf_cur(0), SCX_CPUPERF_ONE);
	scx_bpf_cpuperf_set(0, 0);
	expect(scx_bpf_cpuperf_cur(0), slow);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_right);
}

SCX_OPS_DEFINE(t_ops, .tick = (void *)t_tick, .exit = (void *)t_exit,
	       .name = "t");
