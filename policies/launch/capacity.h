/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the user halves of scx_beerland and scx_bpfland tell them of each CPU. */
#include "siblings.h"

#if SL_HAS(all_cpus_same_capacity)
static bool launch_is_alike(void)
{
	for (s32 cpu = 1; cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++) {
		if (scx_bpf_cpuperf_cap(cpu) != scx_bpf_cpuperf_cap(0))
			return false;
	}
	return true;
}
#endif

static int launch(void)
{
#if SL_HAS(cpu_capacity)
	for (s32 cpu = 0; cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++)
		SL_SET(cpu_capacity[cpu], scx_bpf_cpuperf_cap(cpu));
#endif
#if SL_HAS(all_cpus_same_capacity)
	SL_SET(all_cpus_same_capacity, launch_is_alike());
#endif
	return launch_siblings();
}
