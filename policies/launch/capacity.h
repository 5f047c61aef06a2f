/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the user halves of scx_beerland and scx_bpfland tell them of each CPU. */
#include <scx/launch.h>

static int launch(void)
{
	for (s32 cpu = 0; cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++)
		SL_SET(cpu_capacity[cpu], scx_bpf_cpuperf_cap(cpu));
	return 0;
}
