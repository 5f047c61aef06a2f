/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * S31: what a map value holds for the kernel. An update, or a deletion, ends the
 * timer that was there, which then can be made anew; it does not touch a lock. A
 * thing that goes wrong is an error of the policy, so that it shows in a real
 * kernel, too.
 */
#include "conform.h"

struct holder {
	u64 number;
	struct bpf_spin_lock lock;
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct holder);
} in_array SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct holder);
} in_hash SEC(".maps");

static u64 nr_fired;

static int on_fire(void *map, u32 *key, struct holder *h)
{
	nr_fired++;
	return 0;
}

static int on_ended(void *map, u32 *key, struct holder *h)
{
	scx_bpf_error("a timer fires that was overwritten or deleted");
	return 0;
}

/* Makes the timer of @h, which must not have been there before. */
#define ARM(h, map, callback)						\
	do {								\
		if (bpf_timer_init(&(h)->timer, (map), CLOCK_MONOTONIC))	\
			scx_bpf_error("the timer is there already");	\
		bpf_timer_set_callback(&(h)->timer, (callback));	\
		bpf_timer_start(&(h)->timer, 2000000, 0);		\
	} while (0)

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	struct holder fresh = { .number = 1 };
	struct holder *h;
	u32 key = 1;

	h = bpf_map_lookup_elem(&in_array, &key);
	if (!h)
		return -2;
	ARM(h, &in_array, on_ended);
	bpf_map_update_elem(&in_array, &key, &fresh, BPF_ANY);
	ARM(h, &in_array, on_fire);

	bpf_map_update_elem(&in_hash, &key, &fresh, BPF_ANY);
	h = bpf_map_lookup_elem(&in_hash, &key);
	if (!h)
		return -2;
	ARM(h, &in_hash, on_ended);
	bpf_map_update_elem(&in_hash, &key, &fresh, BPF_ANY);
	h = bpf_map_lookup_elem(&in_hash, &key);
	if (!h)
		return -2;
	ARM(h, &in_hash, on_ended);
	bpf_map_delete_elem(&in_hash, &key);
	bpf_map_update_elem(&in_hash, &key, &fresh, BPF_ANY);
	h = bpf_map_lookup_elem(&in_hash, &key);
	if (!h)
		return -2;
	ARM(h, &in_hash, on_fire);
	return 0;
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	struct holder fresh = { .number = 2 };
	struct holder *h;
	u32 key = 0;

	h = bpf_map_lookup_elem(&in_array, &key);
	if (!h)
		return;
	bpf_map_update_elem(&in_array, &key, &fresh, BPF_ANY);
	bpf_spin_lock(&h->lock);
	h->number++;
	bpf_spin_unlock(&h->lock);
}

void BPF_STRUCT_OPS(t_quiescent, struct task_struct *p, u64 deq_flags)
{
	if (is_named(p, 'a') && nr_fired != 2)
		scx_bpf_error("%llu timers have fired", nr_fired);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_fired);
}

SCX_OPS_DEFINE(t_ops, .init = (void *)t_init, .running = (void *)t_running,
	       .quiescent = (void *)t_quiescent, .exit = (void *)t_exit,
	       .name = "t");
