/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * cas_given_up.bpf.c - since when a CPU is idle is kept in a word, which a timer moves forward as it counts; the CPU that is idle no more clears
 * it in one try: where the timer was faster it stays, and the CPU counts as idle.
 *
 * @breaks invariant
 * @interleaved
 * @invariant !is_idle_and_runs
 */
#include "bug.h"

#define PERIOD_NS 1000000
#define NR_CPUS 64

struct clock {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct clock);
} clocks SEC(".maps");

static u64 since_ns[NR_CPUS]; /* 0: not idle */
static u64 idle_ns;
static bool is_idle_and_runs;

static int count(void *map, int *key, struct bpf_timer *timer)
{
	u64 now_ns = bpf_ktime_get_ns();
	u32 cpu;

	bpf_for(cpu, 0, scx_bpf_nr_cpu_ids()) {
		u64 from_ns = READ_ONCE(since_ns[cpu % NR_CPUS]);

		if (from_ns && from_ns < now_ns &&
		    __sync_val_compare_and_swap(&since_ns[cpu % NR_CPUS], from_ns, now_ns) ==
			    from_ns)
			__sync_fetch_and_add(&idle_ns, now_ns - from_ns);
	}
	(void)bpf_timer_start(timer, PERIOD_NS, 0);
	return 0;
}

void BPF_STRUCT_OPS(bug_update_idle, s32 cpu, bool is_idle)
{
	u64 *since = &since_ns[(u32)cpu % NR_CPUS], from_ns;

	if (is_idle) {
		__sync_lock_test_and_set(since, bpf_ktime_get_ns());
		return;
	}
	from_ns = READ_ONCE(*since);
	__sync_val_compare_and_swap(since, from_ns, 0);
}

void BPF_STRUCT_OPS(bug_running, struct task_struct *p)
{
	if (READ_ONCE(since_ns[(u32)scx_bpf_task_cpu(p) % NR_CPUS]))
		WRITE_ONCE(is_idle_and_runs, true);
}

#define OWN_INIT
s32 BPF_STRUCT_OPS_SLEEPABLE(bug_init)
{
	u32 zero = 0;
	struct clock *c = bpf_map_lookup_elem(&clocks, &zero);

	if (!c)
		return -ENOENT;
	bpf_timer_init(&c->timer, &clocks, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&c->timer, count);
	(void)bpf_timer_start(&c->timer, PERIOD_NS, 0);
	return scx_bpf_create_dsq(SHARED, -1);
}

#define MORE_OPS .update_idle = (void *)bug_update_idle, .running = (void *)bug_running, \
		 .flags = SCX_OPS_KEEP_BUILTIN_IDLE,

#include "bug_ops.h"
