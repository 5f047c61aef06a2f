/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S30: reports an error while it holds tasks of all kinds. */
#include "conform.h"

#define QUEUE 7

static u64 nr_enqueue, kind;

/* One held, one in a user queue, one in a local queue; then the error. */
void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	nr_enqueue++;
	if (is_named(p, 'q'))
		scx_bpf_dsq_insert(p, QUEUE, SCX_SLICE_INF, enq_flags);
	else if (is_named(p, 'h') || is_named(p, 'l'))
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
	else if (is_named(p, 'e'))
		scx_bpf_error("enough of %s after %d", p->comm, 4);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	kind = ei->kind;
	bpf_printk("%s: %s", ei->reason, ei->msg);
	TELL(nr_enqueue);
	TELL(kind);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .init = (void *)t_init,
	       .exit = (void *)t_exit, .name = "t");
