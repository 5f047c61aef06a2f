/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * percpu.bpf.h - what Linux knows of a CPU in variables of the scheduler's own: its
 * last-level cache, for published schedulers that ask by these names.
 *
 * Read next: native.h, scx_bpf_cpu_node().
 */
#ifndef SCX_PERCPU_BPF_H
#define SCX_PERCPU_BPF_H

#include <scx/common.bpf.h>

#ifdef __bpf__
extern const int sd_llc_id __ksym __weak;
extern const int sd_llc_size __ksym __weak;
#define SL_PER_CPU_INT(name, cpu)					\
	({								\
		const int *___at = bpf_ksym_exists(&(name)) ?		\
			bpf_per_cpu_ptr(&(name), (cpu)) : NULL;		\
		___at ? *___at : -ENOENT;				\
	})
static inline int cpu_llc_id(s32 cpu)
{
	return SL_PER_CPU_INT(sd_llc_id, cpu);
}

static inline int cpu_llc_size(s32 cpu)
{
	return SL_PER_CPU_INT(sd_llc_size, cpu);
}
#else
/* The lowest CPU of the same cache, as on Linux. */
static inline int cpu_llc_id(s32 cpu)
{
	return sl_scx_cpu_llc_id(cpu);
}

static inline int cpu_llc_size(s32 cpu)
{
	return sl_scx_cpu_llc_size(cpu);
}
#endif

#endif
