/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S28: what a timer refuses; the first refusal that is missing ends the policy. */
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

static u64 nr_period, nr_cancelled, nr_refused;

#define EXPECT(number, call)						\
	({								\
		long ___got = (call);					\
		if (___got != (number))					\
			scx_bpf_error("%s: %ld, not %ld", #call, ___got, \
				      (long)(number));			\
	})

static int on_cancelled(void *map, int *key, struct timer_value *value)
{
	nr_cancelled++;
	return 0;
}

/* It would wait for itself. */
static int on_period(void *map, int *key, struct timer_value *value)
{
	nr_period++;
	EXPECT(-35, bpf_timer_cancel(&value->timer));
	EXPECT(0, bpf_timer_start(&value->timer, 1000000, 0));
	return 0;
}

/* Where interrupts are off, it could not wait for a callback that runs. */
static void refused(void)
{
	u32 period = 1;
	struct timer_value *p = bpf_map_lookup_elem(&timers, &period);

	if (p)
		EXPECT(-95, bpf_timer_cancel(&p->timer));
	nr_refused++;
}

s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	refused();
	return prev_cpu;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	refused();
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

void BPF_STRUCT_OPS(t_running, struct task_struct *p)
{
	refused();
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	u32 cancelled = 0, period = 1, other = 2;
	struct timer_value *c = bpf_map_lookup_elem(&timers, &cancelled);
	struct timer_value *p = bpf_map_lookup_elem(&timers, &period);
	struct timer_value *o = bpf_map_lookup_elem(&timers, &other);

	if (!c || !p || !o)
		return -EINVAL;
	/* Without a callback it cannot be started, and one that is cancelled has none. */
	EXPECT(0, bpf_timer_init(&c->timer, &timers, CLOCK_MONOTONIC));
	EXPECT(-22, bpf_timer_start(&c->timer, 1000000, 0));
	EXPECT(0, bpf_timer_set_callback(&c->timer, on_cancelled));
	EXPECT(-22, bpf_timer_start(&c->timer, 1000000, 4));
	EXPECT(0, bpf_timer_start(&c->timer, 1000000, 0));
	EXPECT(1, bpf_timer_cancel(&c->timer));
	EXPECT(-22, bpf_timer_start(&c->timer, 1000000, 0));
	/* A clock that there is not. */
	EXPECT(-22, bpf_timer_init(&o->timer, &timers, 3));
	EXPECT(0, bpf_timer_init(&o->timer, &timers, 7));
	EXPECT(0, bpf_timer_init(&p->timer, &timers, CLOCK_MONOTONIC));
	EXPECT(0, bpf_timer_set_callback(&p->timer, on_period));
	EXPECT(0, bpf_timer_start(&p->timer, 1000000, 0));
	return 0;
}

void BPF_STRUCT_OPS(t_exit, struct scx_exit_info *ei)
{
	TELL(nr_period);
	TELL(nr_cancelled);
	TELL(nr_refused);
}

SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu, .enqueue = (void *)t_enqueue,
	       .running = (void *)t_running, .init = (void *)t_init,
	       .exit = (void *)t_exit, .name = "t");
