/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S27: at the first task of a walk, takes away the one that would come next. */
#include "conform.h"

#define QUEUE 7
#define OTHER 8

const volatile u64 flags = 0;
static s32 pid_b, pid_c;
/* Not static: clang would make a byte of it, and the kernel refuses its type. */
u64 is_done;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (is_named(p, 'b'))
		pid_b = p->pid;
	if (is_named(p, 'c'))
		pid_c = p->pid;
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p, *next;
	u64 is_first = 1;

	if (!is_done && scx_bpf_dsq_nr_queued(QUEUE) == 4) {
		is_done = 1;
		bpf_for_each(scx_dsq, p, QUEUE, flags) {
			bpf_printk("%s", p->comm);
			next = is_first ? bpf_task_from_pid(flags ? pid_c : pid_b) : NULL;
			is_first = 0;
			if (!next)
				continue;
			scx_bpf_dsq_move(BPF_FOR_EACH_ITER, next, OTHER, 0);
			bpf_task_release(next);
		}
	}
	if (!scx_bpf_dsq_move_to_local(OTHER))
		scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	s32 err = scx_bpf_create_dsq(OTHER, -1);

	return err ?: scx_bpf_create_dsq(QUEUE, -1);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .init = (void *)t_init,
	       .name = "t");
