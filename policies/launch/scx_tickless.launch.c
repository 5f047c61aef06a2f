/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the user half of scx_tickless tells it of the machine: the order in which CPUs get tasks, with the
 * one that schedules for all at the end. There that is the last one of the least capacity; here, where all are
 * equal, it is CPU 0, on which the policy's init() starts its timer.
 */
#include <scx/launch.h>

static int launch(void)
{
	u32 nr = scx_bpf_nr_cpu_ids();

	for (u32 i = 0; i < nr; i++)
		SL_SET(preferred_cpus[i], (i + 1) % nr);
	return 0;
}
