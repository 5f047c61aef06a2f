/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S17: dispatches a task when its weight has changed; that an idle CPU asks is its business. */
#include "outside.h"

#define QUEUE 7

const volatile u64 kick = 0;
static struct sl_task *task;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	task = (struct sl_task *)p;
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags);
	if (kick && p->scx.weight != 100)
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_IDLE);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p = scx_bpf_dsq_peek(QUEUE);

	if (p && p->scx.weight != 100)
		scx_bpf_dsq_move_to_local(QUEUE);
}

static int change_weight(void *map, u32 *key, struct timer_value *value)
{
	if (task)
		sl_task_set_weight(task, 200);
	return 0;
}

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return 1;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	LATER(change_weight);
	return scx_bpf_create_dsq(QUEUE, -1);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu,
	       .enqueue = (void *)t_enqueue, .dispatch = (void *)t_dispatch,
	       .init = (void *)t_init, .timeout_ms = 1000, .name = "t");
