/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S35: what ops.exit() is told when the run is over. */
#include "conform.h"

UEI_DEFINE(uei);
static u64 kind;

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
	kind = uei.kind;
	bpf_printk("%s[%s]", uei.reason, uei.msg);
	TELL(kind);
}

SCX_OPS_DEFINE(t_ops, .exit = (void *)t_exit, .name = "t");
