/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S33: prints a few random numbers. */
#include "conform.h"

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	for (int i = 0; i < 8; i++) {
		u32 number = bpf_get_prandom_u32();

		bpf_printk("random %u", number);
	}
	return 0;
}

SCX_OPS_DEFINE(t_ops, .init = (void *)t_init, .name = "t");
