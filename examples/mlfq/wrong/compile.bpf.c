/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* compile.bpf.c - does not compile. */
#include <scx/common.bpf.h>

void BPF_STRUCT_OPS(compile_enqueue, struct task_struct *p,
		    u64 enq_flags){ scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL) }

SCX_OPS_DEFINE(compile_ops, .enqueue = (void *)compile_enqueue, .name = "compile");
