# SPDX-License-Identifier: MIT
"""CPUs of different speed: work takes its time, and none is lost wherever it is done (S48)."""

from __future__ import annotations

import numpy as np
import pytest

import schedlab
from schedlab.metrics.consistency import Expectations, check
from schedlab.metrics.speed import BUSY_WATTS, IDLE_WATTS, energy_j, work_received_ns
from schedlab.metrics.timeline import Timeline
from sim.simulated import simulated

ONE = """
[workload]
title = "One task"
question = "How long?"
jitter = "0ms"
tick = "1ms"
[[task]]
name = "a"
phases = [{run = "7ms"}, {sleep = "1ms"}, {run = "14ms"}]
"""
#: Tasks whose bursts have odd lengths, and who share CPUs of three speeds.
MANY = """
[workload]
title = "Tasks that are everywhere"
question = "Is their work done?"
jitter = "0ms"
tick = "1ms"
[[task]]
name = "s"
count = 7
phases = [{loop = 20, do = [{run = "1234567ns"}, {sleep = "700001ns"}, {run = "3ns"}]}]
[[task]]
name = "r"
count = 3
phases = [{run = "40000001ns"}]
"""
WORK_NS = {"s": 20 * 1_234_570, "r": 40_000_001}
#: Slices of odd length, any CPU, and frequencies that change at each stop and tick.
POLICY = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
#define QUEUE 7
s32 BPF_STRUCT_OPS_SLEEPABLE(init) { return scx_bpf_create_dsq(QUEUE, -1); }
void BPF_STRUCT_OPS(enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, QUEUE, 100003 + bpf_get_prandom_u32() % 1500000, enq_flags);
	scx_bpf_kick_cpu(bpf_get_prandom_u32() % 4, bpf_get_prandom_u32() % 3 ? SCX_KICK_IDLE : SCX_KICK_PREEMPT);
}
void BPF_STRUCT_OPS(dispatch, s32 cpu, struct task_struct *prev) { scx_bpf_dsq_move_to_local(QUEUE); }
CLOCKS
SCX_OPS_DEFINE(t_ops, .init = (void *)init, .enqueue = (void *)enqueue, .dispatch = (void *)dispatch, HOOKS
	       .name = "t");
"""
CLOCKS = """
static void change(void) { scx_bpf_cpuperf_set(bpf_get_prandom_u32() % 4, bpf_get_prandom_u32() % 1025); }
void BPF_STRUCT_OPS(stopping, struct task_struct *p, bool runnable) { change(); }
void BPF_STRUCT_OPS(tick, struct task_struct *p) { change(); }
"""
COSTS = ["--cost", "switch_ns=3001", "--cost", "tick_ns=2003", "--cost", "ipi_ns=501"]


def fifo(root):
    return root / "policies" / "fifo.bpf.c"


@pytest.mark.parametrize(
    ("words", "end_ns"),
    [([], 22_000_000), (["--capacity", "0=1024"], 22_000_000), (["--capacity", "0=512"], 43_000_000),
     (["--capacity", "0-0=256"], 85_000_000), (["--capacity", "0=333"], 1_000_000 + -(-21_000_000 * 1024 // 333))],
)  # fmt: skip
def test_a_task_takes_as_long_as_its_cpu_is_slow(simulator, tmp_path, root, words, end_ns):
    assert simulated(simulator, tmp_path, ONE, fifo(root), *words).answer["end_ns"] == end_ns


@pytest.mark.parametrize("costs", [[], COSTS], ids=["free", "costs"])
@pytest.mark.parametrize("are_changed", [False, True], ids=["constant", "clocks"])
@pytest.mark.parametrize("seed", [1, 2])
def test_work_is_conserved_wherever_it_is_done(simulator, tmp_path, costs, are_changed, seed):
    text = POLICY.replace("CLOCKS", CLOCKS if are_changed else "")
    hooks = ".stopping = (void *)stopping, .tick = (void *)tick," if are_changed else ""
    policy = tmp_path / "t.bpf.c"
    policy.write_text(text.replace("HOOKS", hooks))
    words = ["--capacity", "1=512,2-3=333", *costs]
    found = simulated(simulator, tmp_path, MANY, policy, *words, cpus=4, seed=seed)
    assert found.answer["error"] is None and found.answer["nr_exited"] == 10
    timeline = Timeline(found.records)
    names = [found.program.tasks["name"][pid - 1] for pid in timeline.by_task.keys]
    work = np.array([WORK_NS[name] for name in names])
    received, slack_ns = work_received_ns(timeline)
    assert (slack_ns > 0) == (are_changed and bool(costs))
    assert np.abs(received - work).max() <= slack_ns
    assert check(timeline, Expectations(work_ns=found.program.work_ns())) == "ok"
    # More than half of it was not done on the fast CPU, and tasks have moved in the middle.
    assert len({(run["task"], run["cpu"]) for run in found.records.events[timeline.kind == 3]}) > 20
    times = {cpu["busy_ns"] + cpu["idle_ns"] + cpu["overhead_ns"] for cpu in found.answer["cpus"]}
    assert times == {found.answer["end_ns"]}


@pytest.mark.parametrize("capacity", [1024, 512])
def test_energy_is_power_times_time(simulator, tmp_path, root, capacity):
    """A CPU of half the speed works twice as long, at 0.75 of the voltage."""
    found = simulated(simulator, tmp_path, ONE, fifo(root), "--capacity", f"0={capacity}")
    part = capacity / 1024
    expected = BUSY_WATTS * 0.021 * (0.5 + 0.5 * part) ** 2 + IDLE_WATTS * found.answer["end_ns"] / 1e9
    assert energy_j(Timeline(found.records)) == pytest.approx(expected, rel=1e-12)


def test_only_a_machine_that_says_how_fast_it_is_has_energy(tmp_path):
    (tmp_path / "one.toml").write_text(ONE)
    alike, slow = (
        schedlab.run(tmp_path / "one.toml", "fifo", cpus=2, capacity=capacity).runs.row(0, named=True)
        for capacity in ("", {"0": 512})
    )
    assert alike["energy_j"] is None and slow["energy_j"] > 0
    assert slow["makespan_ns"] == 2 * alike["makespan_ns"] - 1_000_000
