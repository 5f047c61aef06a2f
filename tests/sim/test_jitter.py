# SPDX-License-Identifier: MIT
"""What does not come at the same nanosecond on a machine (--cost jitter_ns, timer_ns), and what calls take off runs."""

from __future__ import annotations

import pytest

from schedlab.records.file import Kind, Stop
from sim.simulated import simulated

MS = 1_000_000
#: Between two ticks, 1 ms after the start, a timer gives whoever runs a slice of five ticks, of 1 ms each.
POLICY = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
struct element {
	struct bpf_timer timer;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct element);
	__uint(max_entries, 1);
} elements SEC(".maps");
static u64 begin_ns;

static int on_time(void *map, u32 *key, struct element *e)
{
	struct task_struct *p = scx_bpf_cpu_curr(0);

	bpf_printk("%llu", bpf_ktime_get_ns() - begin_ns);
	if (p)
		scx_bpf_task_set_slice(p, 5000000);
	return 0;
}

void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_INF, enq_flags);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(t_init)
{
	struct element *e;
	u32 key = 0;

	begin_ns = bpf_ktime_get_ns();
	e = bpf_map_lookup_elem(&elements, &key);
	if (!e)
		return -ENOENT;
	bpf_timer_init(&e->timer, &elements, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&e->timer, on_time);
	return (s32)bpf_timer_start(&e->timer, 1300000, 0);
}

SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .init = (void *)t_init, .name = "t");
"""
HEAD = """
[workload]
title = "Tasks"
question = "Is everything to the nanosecond?"
tick = "1ms"
jitter = "0ms"
"""
HOGS = """
[[task]]
name = "a"
count = 2
phases = [{run = "20ms"}]
"""
CALLS = """
[[lock]]
name = "l"
[[task]]
name = "a"
count = 2
phases = [{loop = 10, do = [{run = "1ms"}, {lock = "l"}, {unlock = "l"}, {sleep = "1ms"}]}]
"""


@pytest.fixture
def run(simulator, tmp_path):
    policy = tmp_path / "t.bpf.c"
    policy.write_text(POLICY)

    def answer(tasks, *options, seed=0):
        found = simulated(simulator, tmp_path, HEAD + tasks, policy, *options, seed=seed)
        assert not found.answer["error"]
        return found

    return answer


def turns(found, pid, why):
    """Lengths of the stays of a task on the CPU, in nanoseconds, that ended so."""
    events = found.records.events
    is_one = (events["kind"] == Kind.STOP) & (events["task"] == pid) & (events["flags"] == why)
    return events["arg"][is_one].tolist()


def test_a_slice_of_whole_ticks_lasts_one_more_in_half_of_the_runs(run):
    """S15: what is left of it at a tick is the difference of two readings of the clock."""
    assert turns(run(HOGS), 1, Stop.PREEMPTED)[0] == 6 * MS
    first = [
        turns(run(HOGS, "--cost", "jitter_ns=1000", seed=seed), 1, Stop.PREEMPTED)[0] for seed in range(40)
    ]
    assert set(first) == {6 * MS, 7 * MS}
    assert 8 <= first.count(7 * MS) <= 32


def test_the_seed_says_how_much(run):
    first, again, other = (
        run(CALLS, "--cost", "jitter_ns=1000", seed=seed).records.events for seed in (1, 1, 2)
    )
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()


def test_equal_tasks_have_not_used_the_same(run):
    found = run(CALLS, "--cost", "jitter_ns=1000", seed=3)
    one, other = (sum(turns(found, pid, Stop.BLOCKED)) for pid in (1, 2))
    assert one != other
    # 30 calls each.
    assert all(10 * MS < used <= 10 * MS + 30 * 1000 for used in (one, other))


@pytest.mark.parametrize("late_ns", [0, 2400])
def test_a_bpf_timer_calls_back_later(run, late_ns):
    assert run(HOGS, "--cost", f"timer_ns={late_ns}").said == [str(1_300_000 + late_ns)]


def test_calls_since_the_last_run_are_taken_off_the_next(run):
    """But for the first burst's, and never more than a 128th of a run."""
    found = run(CALLS, "--cost", "call_ns=2000")
    assert turns(found, 1, Stop.BLOCKED)[2:] == [MS] * 8
    dear = run(CALLS, "--cost", "call_ns=10000")
    assert turns(dear, 1, Stop.BLOCKED)[2:] == [MS - 2 * (MS // 128) + 3 * 10_000] * 8
