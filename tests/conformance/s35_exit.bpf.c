/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S35: leaves by itself after three enqueues. */
#include "conform.h"

static u64 nr_enqueue, kind, code;

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (++nr_enqueue == 3)
		scx_bpf_exit(7, "done after %d", 3);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 2000000, enq_flags);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	kind = ei->kind;
	code = ei->exit_code;
	bpf_printk("%s: %s", ei->reason, ei->msg);
	TELL(nr_enqueue);
	TELL(kind);
	TELL(code);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .exit = (void *)t_exit,
	       .name = "t");
