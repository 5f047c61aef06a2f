# SPDX-License-Identifier: MIT
"""Policies with `groups=flat`: a cgroup has its part by weight, however many tasks are in it."""

from __future__ import annotations

import polars as pl
import pytest

import schedlab
from schedlab.hosts.choose import open_host
from schedlab.hosts.host import Job
from schedlab.metrics.dictionary import compute_metrics
from schedlab.metrics.timeline import Timeline
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import read_records
from schedlab.workload.spec import parse_workload

POLICIES = ("cfs", "eevdf", "credit")
HEAD = """
[workload]
title = "Groups in groups"
question = "Does each have its part?"
horizon = "4s"
tick = "1ms"
jitter = "0ms"
"""
TREE = (
    HEAD
    + """
[[group]]
name = "a"
weight = 300
[[group]]
name = "b"
[[group]]
name = "b1"
parent = "b"
weight = 200
[[group]]
name = "b2"
parent = "b"

[[task]]
name = "x"
group = "a"
count = 2
phases = [{run = "10s"}]
[[task]]
name = "y"
group = "b1"
count = 5
phases = [{run = "10s"}]
[[task]]
name = "z"
group = "b2"
weight = 300
phases = [{run = "10s"}]
[[task]]
name = "w"
group = "b2"
phases = [{run = "10s"}]
"""
)
#: Of two groups of one weight, the second has one task and then, when `m` has moved, two.
MOVE = (
    HEAD
    + """
[[group]]
name = "a"
[[group]]
name = "b"

[[task]]
name = "x"
group = "a"
count = 3
phases = [{run = "10s"}]
[[task]]
name = "m"
group = "a"
phases = [{run = "250ms"}, {join = "b"}, {run = "10s"}]
[[task]]
name = "y"
group = "b"
phases = [{run = "10s"}]
"""
)


def parts(workload: str, policy: str, tmp_path, groups: str = "flat", cpus: int = 1) -> dict[str, float]:
    """Per cent of the CPU time by name of tasks."""
    path = tmp_path / "w.toml"
    path.write_text(workload)
    result = schedlab.run(str(path), policy, set={f"{policy}.groups": groups}, cpus=cpus)
    assert result.runs["consistency"].to_list() == ["ok"]
    by_name = result.tasks.group_by(pl.col("name").str.slice(0, 1)).agg(pl.col("run_ns").sum())
    total_ns = by_name["run_ns"].sum()
    return {name: 100 * run_ns / total_ns for name, run_ns in by_name.iter_rows()}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("cpus", [1, 2])
def test_a_group_has_its_part_and_so_has_each_in_it(policy, cpus, tmp_path, simulator):
    """Credit begins with a period's credits for each task, and its slices are long."""
    within = 3 if policy == "credit" else 0.8
    expected = {"x": 75, "y": 25 * 2 / 3, "z": 25 / 3 * 3 / 4, "w": 25 / 3 / 4}
    assert parts(TREE, policy, tmp_path, cpus=cpus) == pytest.approx(expected, abs=within)


@pytest.mark.parametrize("workload", [TREE, MOVE.replace("250ms", "5ms")], ids=["tree", "move"])
@pytest.mark.parametrize("policy", ["cfs", "eevdf"])
def test_user_threads_have_the_parts_that_the_simulator_gives(workload, policy, tmp_path, simulator, build):
    """Whatever others take of the CPU: parts are of what these threads had.

    Not of `credit`, which gives each task a period's credits first: it matters how much they had.
    """
    program = compile_workload(parse_workload(workload, name="w.toml"), seed=0)
    (tmp_path / "program").write_bytes(program.data)
    job = Job(
        label=policy,
        policy=build_policy(load_policy(policy), {"groups": 1}),
        program=tmp_path / "program",
        records=tmp_path / "records",
        n_cpus=1,
        seed=0,
        tick_ns=1_000_000,
    )
    outcome = open_host("uthreads").session(timeout_seconds=60).run(job)
    assert outcome.error is None
    tasks = compute_metrics(Timeline(read_records(job.records))).tasks
    found = dict.fromkeys("xmyzw", 0.0)
    for pid, run_ns in zip(tasks["task"], tasks["run_ns"], strict=True):
        found[program.string(int(program.task_rows[pid - 1]["name"]))[0]] += run_ns
    total_ns = sum(found.values())
    expected = parts(workload, policy, tmp_path)
    assert {name: 100 * found[name] / total_ns for name in expected} == pytest.approx(expected, abs=2)


@pytest.mark.parametrize("policy", POLICIES)
def test_without_the_knob_tasks_are_alone(policy, tmp_path, simulator):
    """Two tasks of 100, five of 100, one of 300 and one of 100."""
    expected = {"x": 200 / 11, "y": 500 / 11, "z": 300 / 11, "w": 100 / 11}
    assert parts(TREE, policy, tmp_path, groups="none") == pytest.approx(expected, abs=2.5)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_task_that_moves_takes_its_part_along(policy, tmp_path, simulator):
    """Until 2 s an eighth each is a's and a half is y's; then a sixth each, and a quarter for m and y."""
    expected = {
        "x": (3 / 8 + 3 / 6) / 2 * 100,
        "m": (1 / 8 + 1 / 4) / 2 * 100,
        "y": (1 / 2 + 1 / 4) / 2 * 100,
    }
    assert parts(MOVE, policy, tmp_path) == pytest.approx(expected, abs=2.5)
