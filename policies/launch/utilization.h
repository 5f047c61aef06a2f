/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * utilization.h - what the user halves of scx_beerland, scx_cosmos and scx_flash set while tasks run.
 *
 * Included by launch files.
 */
#include <scx/launch.h>

/* CPU time of a round, which reads /proc/stat and parses it. */
#define LAUNCH_READ_NS 50000

/* How long tasks of the workload had CPUs since the last round, of 1024, rounded. */
static u64 launch_utilization(void)
{
	static u64 user_before_ns, total_before_ns;
	u64 user_ns = 0, total_ns = 0, user_diff_ns, total_diff_ns;

	for (s32 cpu = 0; cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++) {
		user_ns += sl_scx_cpu_user_ns(cpu);
		total_ns += sl_scx_cpu_system_ns(cpu) + sl_scx_cpu_idle_ns(cpu);
	}
	total_ns += user_ns;
	user_diff_ns = user_ns - user_before_ns;
	total_diff_ns = total_ns - total_before_ns;
	user_before_ns = user_ns;
	total_before_ns = total_ns;
	return (2048 * user_diff_ns + total_diff_ns) / (2 * total_diff_ns);
}
