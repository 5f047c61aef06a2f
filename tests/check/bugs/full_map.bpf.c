/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * full_map.bpf.c - a map has room for four tasks; what comes after is not there, and is used.
 *
 * @breaks error
 * @work-conserving yes  so it says
 */
#include "bug.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, s32);
	__type(value, u64);
} woken SEC(".maps");

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 pid = p->pid;
	u64 none = 0, *n;

	bpf_map_update_elem(&woken, &pid, &none, BPF_NOEXIST);
	n = bpf_map_lookup_elem(&woken, &pid);
	++*n;
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

#include "bug_ops.h"
