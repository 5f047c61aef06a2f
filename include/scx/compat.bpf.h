/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * compat.bpf.h - the names that published schedulers use so as to run on several
 * versions of Linux: here, as on Linux 7.2, each is the function itself.
 *
 * Included by common.bpf.h. Read next: native.h.
 */
#ifndef SCX_COMPAT_BPF_H
#define SCX_COMPAT_BPF_H

#include <scx/common.bpf.h>

#define __COMPAT_ENUM_OR_ZERO(type, value) (value)
#define __COMPAT_HAS_scx_bpf_select_cpu_and 1

#define __COMPAT_is_enq_cpu_selected(enq_flags) \
	(((enq_flags) & SCX_ENQ_CPU_SELECTED) != 0)
#define __COMPAT_bpf_cpumask_populate(dst, src, bytes) \
	bpf_cpumask_populate((dst), (src), (bytes))
#define __COMPAT_scx_bpf_cpu_curr(cpu) scx_bpf_cpu_curr(cpu)
#define __COMPAT_scx_bpf_task_cgroup(p) scx_bpf_task_cgroup(p)
#define __COMPAT_scx_bpf_dsq_peek(dsq_id) scx_bpf_dsq_peek(dsq_id)
#define __COMPAT_scx_bpf_dsq_move(it, p, dsq_id, enq_flags) \
	scx_bpf_dsq_move((it), (p), (dsq_id), (enq_flags))
#define __COMPAT_scx_bpf_dsq_move_vtime(it, p, dsq_id, enq_flags) \
	scx_bpf_dsq_move_vtime((it), (p), (dsq_id), (enq_flags))
#define __COMPAT_scx_bpf_dsq_move_set_slice(it, slice) \
	scx_bpf_dsq_move_set_slice((it), (slice))
#define __COMPAT_scx_bpf_dsq_move_set_vtime(it, vtime) \
	scx_bpf_dsq_move_set_vtime((it), (vtime))
#define __COMPAT_scx_bpf_events(events, bytes) scx_bpf_events((events), (bytes))
#define scx_read_event(events, name) \
	(bpf_core_field_exists((events)->name) ? (events)->name : 0)
#define __COMPAT_scx_bpf_nr_node_ids() scx_bpf_nr_node_ids()
#define __COMPAT_scx_bpf_cpu_node(cpu) scx_bpf_cpu_node(cpu)
#define __COMPAT_scx_bpf_get_idle_cpumask_node(node) \
	scx_bpf_get_idle_cpumask_node(node)
#define __COMPAT_scx_bpf_get_idle_smtmask_node(node) \
	scx_bpf_get_idle_smtmask_node(node)
#define __COMPAT_scx_bpf_pick_idle_cpu_node(allowed, node, flags) \
	scx_bpf_pick_idle_cpu_node((allowed), (node), (flags))
#define __COMPAT_scx_bpf_pick_any_cpu_node(allowed, node, flags) \
	scx_bpf_pick_any_cpu_node((allowed), (node), (flags))

/* Linux 6.12 had these under other names. */
#define scx_bpf_dispatch(p, dsq_id, slice, enq_flags) \
	scx_bpf_dsq_insert((p), (dsq_id), (slice), (enq_flags))
#define scx_bpf_dispatch_vtime(p, dsq_id, slice, vtime, enq_flags) \
	scx_bpf_dsq_insert_vtime((p), (dsq_id), (slice), (vtime), (enq_flags))
#define scx_bpf_consume(dsq_id) scx_bpf_dsq_move_to_local(dsq_id)
#define scx_bpf_dispatch_from_dsq(it, p, dsq_id, enq_flags) \
	scx_bpf_dsq_move((it), (p), (dsq_id), (enq_flags))
#define scx_bpf_dispatch_vtime_from_dsq(it, p, dsq_id, enq_flags) \
	scx_bpf_dsq_move_vtime((it), (p), (dsq_id), (enq_flags))
#define scx_bpf_dispatch_from_dsq_set_slice(it, slice) \
	scx_bpf_dsq_move_set_slice((it), (slice))
#define scx_bpf_dispatch_from_dsq_set_vtime(it, vtime) \
	scx_bpf_dsq_move_set_vtime((it), (vtime))

/*
 * An array that the loader would give one element for each CPU. It has room for as
 * many CPUs as there can be, so that no loader has to.
 */
#ifdef __bpf__
#define RESIZABLE_ARRAY(section, name) \
	name[SCX_CPUS_MAX] SEC("." #section "." #name)
#else
#define RESIZABLE_ARRAY(section, name) name[SCX_CPUS_MAX]
#endif

/* Floor of the base 2 logarithm; that of 0 is 0. */
static inline u32 log2_u32(u32 v)
{
	return 31 - (u32)__builtin_clz(v | 1);
}

/* Bits that @v needs; 1 for 0. */
static inline u32 log2_u64(u64 v)
{
	u32 high = (u32)(v >> 32);

	return high ? log2_u32(high) + 33 : log2_u32((u32)v) + 1;
}

#endif
