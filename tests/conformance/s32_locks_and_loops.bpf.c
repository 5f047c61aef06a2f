/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S32: a value behind a bpf_spin_lock, two behind a bpf_res_spin_lock each; bpf_loop, bpf_for, bpf_repeat. */
#include "conform.h"

struct counter {
	struct bpf_spin_lock lock;
	u64 nr;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counter);
} counters SEC(".maps");

struct guarded {
	struct bpf_res_spin_lock lock;
	u32 nr;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct guarded);
} guarded SEC(".maps");

static long add_one(u64 i, void *ctx)
{
	u64 *sum = ctx;

	*sum += i;
	return i == 4;
}

/*
 * Another lock may be taken while one is held; the same, that another pointer has, may not.
 * What goes wrong is an error of the policy, so that it shows in a real kernel, too.
 */
static void take_two(void)
{
	u32 zero = 0, one = 1;
	struct guarded *a = bpf_map_lookup_elem(&guarded, &zero);
	struct guarded *same = bpf_map_lookup_elem(&guarded, &zero);
	struct guarded *b = bpf_map_lookup_elem(&guarded, &one);

	s64 nested = 1, again = 1, after;

	if (!a || !same || !b)
		return;
	if (!bpf_res_spin_lock(&a->lock)) {
		nested = bpf_res_spin_lock(&b->lock);
		if (!nested)
			bpf_res_spin_unlock(&b->lock);
		again = bpf_res_spin_lock(&same->lock);
		if (!again)
			bpf_res_spin_unlock(&same->lock);
		bpf_res_spin_unlock(&a->lock);
	}
	after = bpf_res_spin_lock(&a->lock);
	if (!after)
		bpf_res_spin_unlock(&a->lock);
	if (nested || again != -35 || after)
		scx_bpf_error("locks: %lld, %lld, %lld", nested, again, after);
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	u32 zero = 0;
	struct counter *c = bpf_map_lookup_elem(&counters, &zero);

	if (!c)
		return;
	bpf_spin_lock(&c->lock);
	c->nr++;
	bpf_spin_unlock(&c->lock);
	take_two();
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	u32 zero = 0;
	struct counter *c = bpf_map_lookup_elem(&counters, &zero);
	u64 nr = c ? c->nr : 0;
	u64 sum = 0, nr_for = 0, nr_repeat = 0;
	s64 stopped = bpf_loop(10, add_one, &sum, 0);
	s64 wrong_flags = bpf_loop(10, add_one, &sum, 1);
	s64 too_many = bpf_loop((8 << 20) + 1, add_one, &sum, 0);
	int i;

	bpf_for(i, 3, 7)
		nr_for += i;
	bpf_repeat(5)
		nr_repeat++;
	TELL(nr);
	TELL(stopped);
	TELL(sum);
	TELL(wrong_flags);
	TELL(too_many);
	TELL(nr_for);
	TELL(nr_repeat);
}

SCX_OPS_DEFINE(t_ops, .running = (void *)t_running, .exit = (void *)t_exit,
	       .name = "t");
