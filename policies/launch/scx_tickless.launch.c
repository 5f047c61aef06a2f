/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the user half of scx_tickless tells it of the machine: the order in which CPUs get tasks, the fastest first,
 * with the one that schedules for all at the end. There that is the last one of the least capacity; here it is
 * CPU 0, on which the policy's init() starts its timer.
 */
#include "core_types.h"

static int launch(void)
{
	u32 first = launch_rank(0), nr = scx_bpf_nr_cpu_ids();

	for (s32 cpu = 1; cpu < (s32)nr; cpu++) {
		u32 rank = launch_rank(cpu);

		SL_SET(preferred_cpus[rank > first ? rank - 1 : rank], (u64)cpu);
	}
	SL_SET(preferred_cpus[nr - 1], 0ULL);
	return 0;
}
