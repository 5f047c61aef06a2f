# SPDX-License-Identifier: MIT
"""In Linux, too, a policy's groups have their quotas, and no more; Linux itself limits none of them.

On one CPU, whose time is virtual: with more, a machine without KVM stops CPUs for as long as the host likes.
"""

from __future__ import annotations

import polars as pl
import pytest

import schedlab

WORKLOAD = """
[workload]
title = "Quotas in quotas"
horizon = "3s"
tick = "4ms"
jitter = "0ms"
[[group]]
name = "a"
quota = "20ms"
[[group]]
name = "b"
weight = 1000
quota = "50ms"
[[group]]
name = "c"
parent = "b"
quota = "10ms"
[[group]]
name = "d"
parent = "b"

[[task]]
name = "x"
group = "a"
count = 2
phases = [{run = "10s"}]
[[task]]
name = "y"
group = "c"
phases = [{run = "10s"}]
[[task]]
name = "z"
group = "d"
phases = [{run = "10s"}]
[[task]]
name = "o"
phases = [{run = "10s"}]
"""
#: Per cent of the CPU: a's 20 ms of 100; of b's 50 there are 10 for c and the rest for d; and what is left.
EXPECTED = {"x": 20, "y": 10, "z": 40, "o": 30}


def parts(host: str, tmp_path) -> dict[str, dict[str, float]]:
    path = tmp_path / "w.toml"
    path.write_text(WORKLOAD)
    result = schedlab.run(
        str(path),
        ["cfs", "eevdf"],
        seeds=1,
        host=host,
        set={"cfs.groups": "flat,tree", "eevdf.groups": "flat,tree"},
    )
    assert result.runs["consistency"].to_list() == ["ok"] * 4
    found: dict[str, dict[str, float]] = {}
    tasks = result.tasks.group_by("policy", pl.col("name").str.slice(0, 1)).agg(pl.col("run_ns").sum())
    for policy, name, run_ns in tasks.iter_rows():
        found.setdefault(policy, {})[name] = run_ns / 3e7
    return found


def test_parts_in_the_guest_are_those_of_the_simulator(guest_parts, simulator, tmp_path):
    """A group exceeds a budget by up to a tick and pays later: one of 4 ms in 3 s, and a budget from before the first task."""
    simulated, real = parts("sim", tmp_path), parts("guest", tmp_path)
    assert simulated.keys() == real.keys() and len(real) == 4
    for policy, found in real.items():
        print(policy, simulated[policy], found)
        assert simulated[policy] == pytest.approx(EXPECTED, abs=1)
        assert found == pytest.approx(EXPECTED, abs=2)
