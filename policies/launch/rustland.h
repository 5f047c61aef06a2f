/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * rustland.h - the part of a user half that scx_rlfifo and scx_rustland have in common: what they set,
 * and how a task is taken from the policy and given back.
 *
 * Included by their launch files.
 */
#include <scx/launch.h>

/* A round makes some ten system calls. */
#define LAUNCH_ROUND_NS 10000

static int launch_rustland(u64 slice)
{
	SL_SET(smt_enabled, sl_has_smt());
	SL_SET(usersched_pid, (u32)sl_scx_user_half_pid());
	SL_SET(khugepaged_pid, 0);
	SL_SET(builtin_idle, true);
	SL_SET(debug, false);
	SL_SET(slice_ns, slice);
	return 0;
}

static bool launch_take(struct queued_task_ctx *task)
{
	if (!SL_RING_READ(&queued, task)) {
		nr_queued = 0;
		return false;
	}
	nr_queued -= nr_queued > 0;
	return true;
}

/* An idle CPU where there is one. Return: false: there is no room. */
static bool launch_give(const struct queued_task_ctx *task, u64 slice, u64 vtime)
{
	struct task_cpu_arg arg = { .pid = task->pid, .cpu = task->cpu, .flags = task->flags };
	s32 cpu = rs_select_cpu(&arg);
	struct dispatched_task_ctx back = {
		.pid = task->pid,
		.cpu = cpu < 0 ? RL_CPU_ANY : cpu,
		.flags = task->flags,
		.slice_ns = slice,
		.vtime = vtime,
		.enq_cnt = task->enq_cnt,
	};

	return SL_RING_WRITE(&dispatched, &back);
}
