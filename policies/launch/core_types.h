/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * core_types.h - how the user halves see CPUs of different capacity: by their order, and as little, big and, where
 * the fastest are faster than the average, turbo ones. There are little ones only if the fastest CPU is 1.3 times as
 * fast as the slowest.
 *
 * Included by launch files.
 */
#include <scx/launch.h>

enum launch_core_type { LAUNCH_LITTLE, LAUNCH_BIG, LAUNCH_TURBO };

/* Capacity of a CPU, of SCX_CPUPERF_ONE, which the fastest one has. */
static u32 launch_capacity(s32 cpu)
{
	u32 max = 0;

	for (s32 i = 0; i < (s32)scx_bpf_nr_cpu_ids(); i++)
		max = scx_bpf_cpuperf_cap(i) > max ? scx_bpf_cpuperf_cap(i) : max;
	return scx_bpf_cpuperf_cap(cpu) * SCX_CPUPERF_ONE / max;
}

static enum launch_core_type launch_core_type(s32 cpu)
{
	u32 nr = scx_bpf_nr_cpu_ids(), own = scx_bpf_cpuperf_cap(cpu), min = own, max = own,
	    sum = 0;

	for (s32 i = 0; i < (s32)nr; i++) {
		u32 one = scx_bpf_cpuperf_cap(i);

		min = one < min ? one : min;
		max = one > max ? one : max;
		sum += one;
	}
	if (sum / nr < max && own == max)
		return LAUNCH_TURBO;
	return 10 * max < 13 * min || own >= sum / nr ? LAUNCH_BIG : LAUNCH_LITTLE;
}

/* A core's type is that of its first CPU. */
static bool launch_has_little_cores(void)
{
	for (s32 cpu = 0; cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++) {
		if (sl_scx_cpu_core_id(cpu) == cpu && launch_core_type(cpu) == LAUNCH_LITTLE)
			return true;
	}
	return false;
}

/* At which place @cpu is in the order of capacities, the highest first; of equal ones the first CPU first. */
static u32 launch_rank(s32 cpu)
{
	u32 rank = 0;

	for (s32 i = 0; i < (s32)scx_bpf_nr_cpu_ids(); i++) {
		u32 own = scx_bpf_cpuperf_cap(cpu), other = scx_bpf_cpuperf_cap(i);

		rank += other > own || (other == own && i < cpu);
	}
	return rank;
}
