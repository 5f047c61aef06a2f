/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S38: fills the dispatch buffer, to the last slot or beyond. */
#include "conform.h"

static struct held held;
static u64 nr_slots_before, nr_slots_after, nr_cancelled;
const volatile u64 nr_wanted = 2;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	hold(&held, p);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	if (held.next - held.first < 3 && held.next < 4)
		return;
	nr_slots_before = scx_bpf_dispatch_nr_slots();
	for (u32 i = 0; i < nr_wanted; i++) {
		struct task_struct *p = bpf_task_from_pid(let_go(&held));

		if (!p)
			break;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
		if (i == 0 && !nr_cancelled) {
			/* Taken back: the task is still the policy's. */
			scx_bpf_dispatch_cancel();
			hold(&held, p);
			nr_cancelled++;
		}
		bpf_task_release(p);
	}
	nr_slots_after = scx_bpf_dispatch_nr_slots();
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_slots_before);
	TELL(nr_slots_after);
	TELL(nr_cancelled);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .exit = (void *)t_exit,
	       .dispatch_max_batch = 2, .timeout_ms = 1000, .name = "t");
