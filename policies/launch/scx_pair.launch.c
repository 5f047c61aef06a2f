/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the user half of scx_pair does before it attaches it: each CPU of the lower half has one of the
 * upper half as its pair. On an odd number of CPUs, so on one, that half refuses, too.
 */
#include <scx/launch.h>

/* There are no more cgroups in a machine's life; the policy takes queues in turn. */
#define LAUNCH_QUEUES 256

static int launch(void)
{
	u32 nr = scx_bpf_nr_cpu_ids(), half = nr / 2;
	int err = 0;

	if (nr % 2)
		return SL_REFUSE("scx_pair needs an even number of CPUs, and there %s %u",
				 nr == 1 ? "is" : "are", nr);
	SL_SET(nr_cpu_ids, nr);
	SL_SET(pair_batch_dur_ns, (u32)SCX_SLICE_DFL);
	for (u32 i = 0; !err && i < half; i++) {
		SL_SET(pair_cpu[i], (s32)(i + half));
		SL_SET(pair_cpu[i + half], (s32)i);
		SL_SET(pair_id[i], i);
		SL_SET(pair_id[i + half], i);
		SL_SET(in_pair_idx[i], 0);
		SL_SET(in_pair_idx[i + half], 1);
	}
	/* A machine has been up for longer than a batch: that of no cgroup has expired. Here time begins at 0. */
	for (u32 i = 0; !err && i < half; i++)
		((struct pair_ctx *)bpf_map_lookup_elem(&pair_ctx, &i))->draining = true;
	for (u32 i = 0; !err && i < LAUNCH_QUEUES; i++)
		err = sl_map_create_inner(SL_MAP(&cgrp_q_arr), i, BPF_MAP_TYPE_QUEUE, sizeof(u32),
					  MAX_QUEUED);
	return err;
}
