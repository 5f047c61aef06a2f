/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the user half of scx_mitosis does before it attaches it, with the defaults of its options. */
#include <scx/launch.h>

static int launch(void)
{
	u32 nr = scx_bpf_nr_cpu_ids();

	if (nr > MAX_CPUS)
		return SL_REFUSE("scx_mitosis takes at most %u CPUs", MAX_CPUS);
	SL_SET(slice_ns, SCX_SLICE_DFL);
	SL_SET(nr_possible_cpus, nr);
	for (u32 cpu = 0; cpu < nr; cpu++)
		SL_SET(all_cpus[cpu / 8], (unsigned char)(all_cpus[cpu / 8] | 1U << cpu % 8));
	return 0;
}
