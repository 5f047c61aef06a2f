# SPDX-License-Identifier: MIT
"""CPUs that go and come back at any moment: time adds up, and no task is lost (S47)."""

from __future__ import annotations

import pytest

from schedlab.metrics.consistency import Expectations, check
from schedlab.metrics.timeline import Timeline
from schedlab.records.file import Kind, Overhead
from sim.simulated import simulated

#: Sleepers with several lengths, bound ones, and one that lasts.
WORKLOAD = """
[workload]
title = "Tasks that are everywhere"
question = "Where are they when their CPU goes?"
jitter = "0ms"
tick = "1ms"
[[task]]
name = "s"
count = 5
phases = [{loop = 30, do = [{run = "700us"}, {sleep = "1100us"}]}]
[[task]]
name = "b"
count = 2
affinity = [1]
phases = [{loop = 10, do = [{run = "2ms"}, {sleep = "3ms"}]}]
[[task]]
name = "r"
phases = [{run = "60ms"}]
"""
COSTS = [
    word
    for cost in ("switch_ns=300000", "tick_ns=200000", "ipi_ns=50000", "migrate_ns=10000")
    for word in ("--cost", cost)
]


def adds_up(found) -> bool:
    """Whether records are consistent, all have ended, and each CPU's time is all of the run."""
    answer = found.answer
    times = {cpu["busy_ns"] + cpu["idle_ns"] + cpu["overhead_ns"] for cpu in answer["cpus"]}
    assert check(Timeline(found.records), Expectations()) == "ok"
    return answer["error"] is None and answer["nr_exited"] == 8 and times == {answer["end_ns"]}


@pytest.fixture
def policy(root):
    return root / "tests" / "conformance" / "s47_hotplug.bpf.c"


@pytest.mark.parametrize("costs", [[], COSTS], ids=["free", "costs"])
@pytest.mark.parametrize("topology", [[], ["--topology", "smt=2,llc=4"]], ids=["flat", "smt"])
def test_cpus_go_and_come_at_any_moment(simulator, tmp_path, policy, costs, topology):
    spans = [f"{1 + i % 3}:{i * 733_331}:{(i * 7 % 11 + 1) * 191_919}" for i in range(100)]
    above = ",".join(f"{i % 4}:{i * 1_933_331}:{i * 31_919 + 1}" for i in range(30))
    words = ["--cpus", "4", "--offline", ",".join(spans), "--above", above, *topology, *costs]
    assert adds_up(simulated(simulator, tmp_path, WORKLOAD, policy, *words))


def test_a_run_that_ends_while_a_cpu_is_offline(simulator, tmp_path, policy):
    """That is no idle time, nor is what a real-time task has at the end."""
    words = ["--cpus", "2", "--offline", "1:5000000:900000000000", "--above", "0:10000000:1000000"]
    found = simulated(simulator, tmp_path, WORKLOAD, policy, *words)
    assert adds_up(found)
    end_ns = found.answer["end_ns"]
    assert found.answer["cpus"][1]["overhead_ns"] == end_ns - 5_000_000
    events = found.records.events
    stolen = events[(events["kind"] == Kind.OVERHEAD) & (events["flags"] == Overhead.STOLEN)]
    assert stolen["arg"].tolist() == [1_000_000, end_ns - 5_000_000]
    assert max(events[(events["kind"] == Kind.RUN) & (events["cpu"] == 1)]["t_ns"]) < 5_000_000
