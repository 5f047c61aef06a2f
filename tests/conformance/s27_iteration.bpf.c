/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S27: walks a queue from both ends while moving what it sees. */
#include "conform.h"

#define QUEUE 7
#define OTHER 8

static u64 nr_walks, nr_visits, nr_moved, nr_foreign, nr_second;
/* Not static: clang would make a byte of it, and the kernel refuses its type. */
u64 is_done;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags);
}

static __always_inline void show(u64 flags)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, QUEUE, flags)
		bpf_printk("%s", p->comm);
}

void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	struct task_struct *p;

	if (!is_done && scx_bpf_dsq_nr_queued(QUEUE) == 4) {
		is_done = 1;
		show(0);
		show(SCX_DSQ_ITER_REV);
		/*
		 * Each is put at the end of the queue that is walked. It was
		 * inserted after the walk began, so it is not seen again.
		 */
		bpf_for_each(scx_dsq, p, QUEUE, 0) {
			nr_visits++;
			nr_moved += scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, QUEUE, 0);
			/* It is no more what this walk saw. */
			nr_second += scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, OTHER, 0);
		}
		/* Backward, taking away under the walk's feet. */
		bpf_for_each(scx_dsq, p, QUEUE, SCX_DSQ_ITER_REV) {
			nr_walks++;
			if (is_named(p, 'd') || is_named(p, 'c'))
				scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, OTHER, 0);
		}
		nr_foreign = scx_bpf_dsq_nr_queued(OTHER);
		bpf_printk("then");
		show(0);
	}
	if (!scx_bpf_dsq_move_to_local(OTHER))
		scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	s32 err = scx_bpf_create_dsq(OTHER, -1);

	return err ?: scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_walks);
	TELL(nr_visits);
	TELL(nr_moved);
	TELL(nr_second);
	TELL(nr_foreign);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue,
	       .dispatch = (void *)t_dispatch, .init = (void *)t_init,
	       .exit = (void *)t_exit, .name = "t");
