/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * percpu.h - what the policies of report 3 share, in which each CPU has its own
 * queues: new tasks are dealt out to the CPUs in turn, and one timer for all CPUs
 * calls on_period(), which the policy defines.
 *
 * Read next: policies/o1.bpf.c.
 */
#include <scx/common.bpf.h>

struct period_timer {
	struct bpf_timer timer;
	u64 next_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct period_timer);
} period_timers SEC(".maps");

static u32 next_cpu; /* where the next new task goes; atomic */

/* Return: the next CPU in turn or, where @p may not run there, @otherwise. */
static inline s32 deal_cpu(struct task_struct *p, s32 otherwise)
{
	s32 cpu = (s32)(__sync_fetch_and_add(&next_cpu, 1) % scx_bpf_nr_cpu_ids());

	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ? cpu : otherwise;
}

/* Context: once per period, which it begins anew with set_period_timer(). */
static int on_period(void *map, u32 *key, struct period_timer *t);

/* A period that was missed begins now. */
static inline s32 set_period_timer(struct period_timer *t, u64 period_ns)
{
	u64 now_ns = bpf_ktime_get_ns();

	if (!time_before(now_ns, t->next_ns))
		t->next_ns = now_ns + period_ns;
	return (s32)bpf_timer_start(&t->timer, t->next_ns, BPF_F_TIMER_ABS);
}

/* Context: ops.init. Return: 0 or -errno. */
static inline s32 start_periods(u64 period_ns)
{
	struct period_timer *t;
	u32 key = 0;

	t = bpf_map_lookup_elem(&period_timers, &key);
	if (!t)
		return -ENOENT;
	bpf_timer_init(&t->timer, &period_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&t->timer, on_period);
	t->next_ns = bpf_ktime_get_ns() + period_ns;
	return set_period_timer(t, period_ns);
}
