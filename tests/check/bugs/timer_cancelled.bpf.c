/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * timer_cancelled.bpf.c - a timer is cancelled, which drops its callback, and started again; that it fails is not looked at.
 *
 * @breaks stall
 */
#include "bug.h"

struct clock {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct clock);
} clocks SEC(".maps");

static bool has_turn[64];

static int begin_turns(void *map, int *key, struct bpf_timer *timer)
{
	s32 cpu;

	bpf_for(cpu, 0, scx_bpf_nr_cpu_ids()) {
		has_turn[cpu & 63] = true;
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
	return 0;
}

#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, p->scx.weight < 100 ? OTHER : SHARED, SCX_SLICE_DFL, enq_flags);
	kick_idle_for(p);
}

/* Each CPU takes a light task once in 50 ms. */
#define OWN_DISPATCH
void BPF_STRUCT_OPS(bug_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 zero = 0;
	struct clock *c = bpf_map_lookup_elem(&clocks, &zero);

	if (c && has_turn[cpu & 63] && scx_bpf_dsq_move_to_local(OTHER, 0)) {
		has_turn[cpu & 63] = false;
		(void)bpf_timer_start(&c->timer, 50000000, 0);
		return;
	}
	scx_bpf_dsq_move_to_local(SHARED, 0);
}

#define OWN_INIT
s32 BPF_STRUCT_OPS_SLEEPABLE(bug_init)
{
	u32 zero = 0;
	struct clock *c = bpf_map_lookup_elem(&clocks, &zero);
	s32 err = scx_bpf_create_dsq(SHARED, -1);

	if (!c)
		return -ENOENT;
	bpf_timer_init(&c->timer, &clocks, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&c->timer, begin_turns);
	(void)bpf_timer_start(&c->timer, 50000000, 0);
	return err ? err : scx_bpf_create_dsq(OTHER, -1);
}

/* A task that comes waits for a whole period. */
s32 BPF_STRUCT_OPS_SLEEPABLE(bug_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	u32 zero = 0;
	struct clock *c = bpf_map_lookup_elem(&clocks, &zero);

	if (!c)
		return -ENOENT;
	bpf_timer_cancel(&c->timer);
	(void)bpf_timer_start(&c->timer, 50000000, 0);
	return 0;
}

#define MORE_OPS .init_task = (void *)bug_init_task,

#include "bug_ops.h"
