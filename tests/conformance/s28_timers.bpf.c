/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S28: two timers, the later one started first; one of them periodic. */
#include "conform.h"

struct timer_value {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 3);
	__type(key, u32);
	__type(value, struct timer_value);
} timers SEC(".maps");

static u64 nr_period, nr_cancelled, was_armed, nr_twice;

static int on_period(void *map, int *key, struct timer_value *value)
{
	nr_period++;
	if (nr_period == 1)
		bpf_printk("period");
	bpf_timer_start(&value->timer, 5000000, 0);
	return 0;
}

static int on_once(void *map, int *key, struct timer_value *value)
{
	bpf_printk("once");
	return 0;
}

static int on_cancelled(void *map, int *key, struct timer_value *value)
{
	nr_cancelled++;
	return 0;
}

static void start(u32 key, void *callback, u64 after_ns)
{
	struct timer_value *value = bpf_map_lookup_elem(&timers, &key);

	if (!value)
		return;
	bpf_timer_init(&value->timer, &timers, CLOCK_MONOTONIC);
	nr_twice += bpf_timer_init(&value->timer, &timers, CLOCK_MONOTONIC) == -16;
	bpf_timer_set_callback(&value->timer, callback);
	bpf_timer_start(&value->timer, after_ns, 0);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	u32 key = 2;
	struct timer_value *value;

	start(0, on_period, 5000000);
	start(1, on_once, 2000000);
	start(2, on_cancelled, 1000000);
	value = bpf_map_lookup_elem(&timers, &key);
	if (value)
		was_armed = bpf_timer_cancel(&value->timer);
	return 0;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_period);
	TELL(nr_cancelled);
	TELL(was_armed);
	TELL(nr_twice);
}

SCX_OPS_DEFINE(t_ops, .init = (void *)t_init, .exit = (void *)t_exit,
	       .name = "t");
