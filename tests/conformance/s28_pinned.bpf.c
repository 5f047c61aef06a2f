/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S28: each CPU starts a timer of its own, pinned, as soon as a task runs there. */
#include "conform.h"

struct timer_value {
	struct bpf_timer timer;
	u64 nr, nr_elsewhere;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct timer_value);
} timers SEC(".maps");

static u64 nr_refused, nr_flag_refused;
static bool is_begun[2];

static int on_timer(void *map, u32 *key, struct timer_value *value)
{
	value->nr++;
	value->nr_elsewhere += bpf_get_smp_processor_id() != *key;
	bpf_timer_start(&value->timer, 2000000, BPF_F_TIMER_CPU_PIN);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	struct timer_value *value;
	u32 key;

	bpf_for(key, 0, 2) {
		value = bpf_map_lookup_elem(&timers, &key);
		if (!value)
			return -2;
		bpf_timer_init(&value->timer, &timers, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&value->timer, on_timer);
		nr_flag_refused += bpf_timer_start(&value->timer, 1, 4) == -22;
	}
	return 0;
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct timer_value *value = bpf_map_lookup_elem(&timers, &cpu);

	if (!value || cpu > 1 || is_begun[cpu])
		return;
	is_begun[cpu] = true;
	nr_refused += !!bpf_timer_start(&value->timer, 2000000, BPF_F_TIMER_CPU_PIN);
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	u64 nr_elsewhere = 0, nr_busy = 0;
	struct timer_value *value;
	u32 key;

	bpf_for(key, 0, 2) {
		value = bpf_map_lookup_elem(&timers, &key);
		if (!value)
			continue;
		nr_busy += value->nr > 5;
		nr_elsewhere += value->nr_elsewhere;
	}
	TELL(nr_busy);
	TELL(nr_elsewhere);
	TELL(nr_refused);
	TELL(nr_flag_refused);
}

SCX_OPS_DEFINE(t_ops, .init = (void *)t_init, .running = (void *)t_running,
	       .exit = (void *)t_exit, .name = "t");
