/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S2: queues may come and go for ever; only those that exist at once count. */
#include "conform.h"

#define NR_QUEUES 20000

static u64 nr_made, nr_lost;

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	s32 i;

	bpf_for(i, 0, NR_QUEUES) {
		u64 id = 1000 + (u64)i;

		if (scx_bpf_create_dsq(id, -1) == 0)
			nr_made++;
		if (scx_bpf_dsq_nr_queued(id) != 0)
			nr_lost++;
		scx_bpf_destroy_dsq(id);
		if (scx_bpf_dsq_nr_queued(id) >= 0)
			nr_lost++;
	}
	if (nr_made != NR_QUEUES || nr_lost)
		scx_bpf_error("%llu queues made, %llu lost", nr_made, nr_lost);
	return 0;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_made);
	TELL(nr_lost);
}

SCX_OPS_DEFINE(t_ops, .init = (void *)t_init, .exit = (void *)t_exit,
	       .name = "t");
