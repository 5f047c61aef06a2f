/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the user halves of scx_beerland and scx_bpfland tell them of each CPU. */
#include "core_types.h"
#include "nodes.h"
#include "siblings.h"

static int launch(void)
{
	__maybe_unused bool is_alike = true;

	for (s32 cpu = 0; cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++) {
#if SL_HAS(cpu_capacity)
		SL_SET(cpu_capacity[cpu], launch_capacity(cpu));
#endif
#if SL_HAS(preferred_cpus)
		SL_SET(preferred_cpus[launch_rank(cpu)], (u64)cpu);
#endif
		is_alike &= launch_capacity(cpu) == SCX_CPUPERF_ONE;
	}
#if SL_HAS(all_cpus_same_capacity)
	SL_SET(all_cpus_same_capacity, is_alike);
#endif
	launch_nodes();
	return launch_siblings();
}
