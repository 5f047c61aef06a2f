/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * siblings.h - what the user halves of several schedulers tell them, pair by pair: which CPUs are of one core, and
 * some of them which have a cache in common. A CPU without a sibling has none.
 *
 * Included by launch files.
 */
#include <scx/launch.h>

#if SL_HAS(enable_sibling_cpu)
enum { LAUNCH_SMT = 0, LAUNCH_L3 = 3 };

static int launch_pair(s32 level, s32 cpu, s32 sibling)
{
	struct domain_arg pair = { .cpu_id = cpu, .sibling_cpu_id = sibling };

#if SL_HAS(lvl_id)
	pair.lvl_id = level;
#endif
	return SL_CALL(enable_sibling_cpu, &pair, sizeof(pair));
}

/* A cache that is that of one core is left out. The second level is, here, always. */
static bool launch_has_shared_cache(s32 cpu)
{
	for (s32 i = 0; i < (s32)scx_bpf_nr_cpu_ids(); i++) {
		if (sl_scx_cpu_llc_id(i) == sl_scx_cpu_llc_id(cpu) &&
		    sl_scx_cpu_core_id(i) != sl_scx_cpu_core_id(cpu))
			return true;
	}
	return false;
}
#endif

static int launch_siblings(void)
{
	int err = 0;
#if SL_HAS(enable_sibling_cpu)
	s32 nr = (s32)scx_bpf_nr_cpu_ids();

#if !SL_HAS(lvl_id) || SL_HAS(smt_cpumask)
	for (s32 cpu = 0; !err && sl_has_smt() && cpu < nr; cpu++)
		err = launch_pair(LAUNCH_SMT, cpu, sl_sibling_of(cpu));
#endif
#if SL_HAS(l3_cpumask)
	for (s32 cpu = 0; !err && cpu < nr; cpu++) {
		for (s32 i = 0; !err && launch_has_shared_cache(cpu) && i < nr; i++) {
			if (sl_scx_cpu_llc_id(i) == sl_scx_cpu_llc_id(cpu))
				err = launch_pair(LAUNCH_L3, cpu, i);
		}
	}
#endif
#endif
	return err;
}
