# SPDX-License-Identifier: MIT
"""A CPU that is woken for one task takes another: the one left behind is given an idle CPU."""

from __future__ import annotations

import json

import pytest

from schedlab.api import run

HEAD = """
[workload]
title = "Left behind"
question = "Is a CPU idle beside a task that may run there?"
tick = "1ms"
jitter = "0s"
horizon = "100ms"
"""
#: Tasks whose CPU takes another one, as `schedlab check` found them.
BOUND = """
[[task]]
name = "free"
count = 2
arrival = "1ms"
phases = [{loop = "forever", do = [{run = "1ms"}]}]
[[task]]
name = "bound"
arrival = "1ms"
affinity = [1, 3]
phases = [{loop = "forever", do = [{run = "1ms"}]}]
"""
LOCKED = """
[[lock]]
name = "m"
[[task]]
name = "free"
phases = [{loop = "forever", do = [{run = "1ms"}, {sleep = "1ms"}]}]
[[task]]
name = "urgent"
affinity = [0]
deadline = "9999.999us"
phases = [{loop = "forever", do = [{lock = "m"}, {run = "1ms"}, {unlock = "m"}]}]
[[task]]
name = "holder"
phases = [{loop = "forever", do = [{lock = "m"}, {run = "10ms"}, {unlock = "m"}, {run = "10ms"}]}]
"""
YIELDED = """
[[task]]
name = "hog"
phases = [{loop = "forever", do = [{run = "100ms"}]}]
[[task]]
name = "b"
phases = [{loop = "forever", do = [{run = "1ms"}, {sleep = "1ms"}]}]
[[task]]
name = "yields"
affinity = [2, 3, 6, 7]
phases = [{loop = "forever", do = [{run = "1ms"}, "yield"]}]
[[task]]
name = "d"
count = 2
phases = [{loop = "forever", do = [{run = "1ms"}, {sleep = "1ms"}]}]
"""


@pytest.mark.parametrize(
    ("policy", "tasks", "cpus", "topology"),
    [("sjf", BOUND, 4, "smt=2"), ("edf", LOCKED, 3, None), ("rt_rr", YIELDED, 8, "smt=2")],
    ids=("sjf", "edf", "rt_rr"),
)
def test_what_is_left_behind_is_given_an_idle_cpu(policy, tasks, cpus, topology, tmp_path, build):
    (tmp_path / "behind.toml").write_text(HEAD + tasks)
    run(tmp_path / "behind.toml", [policy], seeds=1, cpus=cpus, topology=topology, out=tmp_path / "out")
    (file,) = (tmp_path / "out").rglob("run.json")
    found = json.loads(file.read_text())
    assert found["status"] == "ok" and found["consistency"] == "ok", found["error"]
