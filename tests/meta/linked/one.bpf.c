/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * one.bpf.c - a policy that remembers, and names everything as two.bpf.c does.
 *
 * Its init() calls nothing of a host, so that a test may call it by hand.
 *
 * @knob slice_ns ns 1 1000000000  returned by init, plus the number of starts
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

const volatile u64 slice_ns = 1000;
u64 nr_starts = 100;	    /* starts non-zero: in data */
static u32 nr_starts_again; /* starts as zero: in bss */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 3);
	__type(key, u32);
	__type(value, u64);
} stats SEC(".maps");

s32 BPF_STRUCT_OPS(same_init)
{
	nr_starts++;
	nr_starts_again++;
	return slice_ns + (nr_starts - 100) * 10 + nr_starts_again;
}

void BPF_STRUCT_OPS(same_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 key = 0;
	u64 *value = bpf_map_lookup_elem(&stats, &key);

	if (value)
		(*value)++;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, slice_ns, enq_flags);
}

SCX_OPS_DEFINE(same_ops,
	       .init = (void *)same_init,
	       .enqueue = (void *)same_enqueue,
	       .name = "one");
