# SPDX-License-Identifier: MIT
"""Policies with `groups`: a cgroup has its part by weight, however many tasks are in it."""

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
TREES = ("cfs", "eevdf")
MODES = [(policy, "flat") for policy in POLICIES] + [(policy, "tree") for policy in TREES]
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
#: Group a always has something to run, but for its tasks `s` that sleep in turn.
SLEEPERS = (
    HEAD
    + """
[[group]]
name = "a"
[[group]]
name = "b"

[[task]]
name = "h"
group = "a"
phases = [{run = "10s"}]
[[task]]
name = "s"
group = "a"
count = 8
phases = [{loop = "forever", do = [{run = "2ms"}, {sleep = "20ms"}]}]
[[task]]
name = "x"
group = "b"
phases = [{run = "10s"}]
"""
)
#: Until 2 s group a can use one CPU, and is worth nearly two.
FEW = (
    HEAD
    + """
[[group]]
name = "a"
weight = 1000
[[group]]
name = "b"

[[task]]
name = "h"
group = "a"
phases = [{run = "10s"}]
[[task]]
name = "l"
group = "a"
count = 3
arrival = "3s"
phases = [{run = "10s"}]
[[task]]
name = "x"
group = "b"
count = 2
phases = [{run = "10s"}]
"""
)
#: The first task of group a's queue may not run on CPU 1, and that group is first.
BOUND = (
    HEAD
    + """
[[group]]
name = "a"
weight = 10000
[[group]]
name = "b"

[[task]]
name = "p"
group = "a"
count = 2
affinity = [0]
phases = [{run = "10s"}]
[[task]]
name = "x"
group = "b"
count = 2
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


@pytest.mark.parametrize(("policy", "groups"), MODES)
@pytest.mark.parametrize("cpus", [1, 2])
def test_a_group_has_its_part_and_so_has_each_in_it(policy, groups, cpus, tmp_path, simulator):
    """Credit begins with a period's credits for each task, and its slices are long."""
    within = 3 if policy == "credit" else 0.8
    expected = {"x": 75, "y": 25 * 2 / 3, "z": 25 / 3 * 3 / 4, "w": 25 / 3 / 4}
    assert parts(TREE, policy, tmp_path, groups, cpus=cpus) == pytest.approx(expected, abs=within)


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


@pytest.mark.parametrize(("policy", "groups"), MODES)
def test_a_task_that_moves_takes_its_part_along(policy, groups, tmp_path, simulator):
    """Until 2 s an eighth each is a's and a half is y's; then a sixth each, and a quarter for m and y."""
    expected = {
        "x": (3 / 8 + 3 / 6) / 2 * 100,
        "m": (1 / 8 + 1 / 4) / 2 * 100,
        "y": (1 / 2 + 1 / 4) / 2 * 100,
    }
    assert parts(MOVE, policy, tmp_path, groups) == pytest.approx(expected, abs=2.5)


@pytest.mark.parametrize("policy", TREES)
def test_sleepers_gain_nothing_for_a_group_that_never_sleeps(policy, tmp_path, simulator):
    """In one queue each of them has a sleeper's credit; in a tree their group has none."""
    assert parts(SLEEPERS, policy, tmp_path, "tree")["x"] == pytest.approx(50, abs=0.5)
    assert parts(SLEEPERS, policy, tmp_path, "flat")["x"] < 45


@pytest.mark.parametrize("policy", TREES)
def test_cpus_that_run_at_the_same_time_do_not_all_take_the_same_group(policy, tmp_path, simulator):
    """With ticks of 10 ms z and w have equal parts where both CPUs take a task of b2 at once."""
    found = parts(TREE.replace('tick = "1ms"', 'tick = "10ms"'), policy, tmp_path, "tree", cpus=2)
    assert found["z"] / found["w"] == pytest.approx(3, abs=0.2)


@pytest.mark.parametrize("policy", TREES)
def test_a_group_makes_up_for_little_of_what_it_could_not_use(policy, tmp_path, simulator):
    """For 3 s it had 0.8 CPUs less than its part; 100 ms of b's one are 1 s of its own, on two CPUs."""
    path = tmp_path / "w.toml"
    path.write_text(FEW)
    result = schedlab.run(str(path), policy, set={f"{policy}.groups": "tree"}, cpus=2)
    waits = result.tasks.filter(pl.col("name").str.starts_with("x"))["wait_ns_max"]
    assert waits.max() < 600_000_000


@pytest.mark.parametrize("policy", TREES)
def test_a_task_that_may_not_run_here_keeps_no_other_from_it(policy, tmp_path, simulator):
    assert parts(BOUND, policy, tmp_path, "tree", cpus=2) == pytest.approx({"p": 50, "x": 50}, abs=1)


@pytest.mark.parametrize("policy", TREES)
def test_more_groups_and_levels_than_there_are_queues(policy, tmp_path, simulator):
    """The tasks of the others count as their parents'; what is left has its part."""
    wide = [
        f'[[group]]\nname = "g{i}"\n[[task]]\nname = "t{i}"\ngroup = "g{i}"\nphases = [{{run = "1ms"}}]\n'
        for i in range(80)
    ]
    deep = ['[[group]]\nname = "d0"\n'] + [
        f'[[group]]\nname = "d{i}"\nparent = "d{i - 1}"\n' for i in range(1, 20)
    ]
    last = '[[task]]\nname = "last"\ngroup = "d19"\nphases = [{run = "10s"}]\n'
    other = '[[group]]\nname = "o"\n[[task]]\nname = "o"\ngroup = "o"\nphases = [{run = "10s"}]\n'
    assert parts(HEAD + "".join(wide) + last.replace("d19", "g79"), policy, tmp_path, "tree").keys() == {
        "t",
        "l",
    }
    assert parts(HEAD + "".join(deep) + last + other, policy, tmp_path, "tree") == pytest.approx(
        {"l": 50, "o": 50}, abs=0.5
    )
