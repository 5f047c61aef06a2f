# SPDX-License-Identifier: MIT
"""Upstream's schedulers, as published, compile and run here without an edit.

They are fetched when the test runs and never kept in the repository: scx_simple
and scx_cpu0 from the source of Linux 7.2 (linux_source.py). No package carries scx_prev; a folder that has it, named by
SCHEDLAB_UPSTREAM, is used for any of the three. A whole checkout of sched-ext/scx,
named so, is used for those that need a launch file.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import schedlab
from policies.linux_source import linux_source
from schedlab.errors import UnavailableError
from schedlab.hosts.guest import policies as guest
from schedlab.paths import cache_folder
from schedlab.policy.bpf import compile_object
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, read_records
from schedlab.records.ftrace import trace_records
from schedlab.workload.find import load_workload

pytestmark = pytest.mark.full

IN_PACKAGE = ("scx_simple", "scx_cpu0")
ELSEWHERE = ("scx_prev",)
HOGS = """
[workload]
title = "Hogs of two weights, and a sleeper"
question = "What does a task of three times the weight get?"
tick = "4ms"
jitter = "0ms"
horizon = "4s"

[[task]]
name = "light"
count = 3
weight = 100
phases = [{run = "60s"}]

[[task]]
name = "heavy"
count = 2
nice = -5
phases = [{run = "60s"}]

[[task]]
name = "sleeper"
phases = [{loop = 100, do = [{sleep = "7.3ms"}, {run = "1.1ms"}]}]
"""
LIGHT, HEAVY = (1, 2, 3), (4, 5)
#: The bound of the project's design.
SHARE_POINTS = 0.02


@pytest.fixture(scope="session")
def upstream():
    """Function that returns the path of a scheduler's source, or skips."""

    def find(name: str) -> Path:
        given = os.environ.get("SCHEDLAB_UPSTREAM")
        if not given and name in IN_PACKAGE:
            return linux_source() / "tools" / "sched_ext" / f"{name}.bpf.c"
        folder = Path(given) if given else cache_folder("upstream")
        places = (folder / f"{name}.bpf.c", folder / "scheds" / "c" / f"{name}.bpf.c")
        path = next((place for place in places if place.exists()), places[0])
        if not path.exists():
            pytest.skip(
                f"no Debian package carries {name}.bpf.c; to test it, put it into a folder "
                "and set SCHEDLAB_UPSTREAM to that"
            )
        return path

    return find


@pytest.mark.parametrize("name", [*IN_PACKAGE, *ELSEWHERE])
@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_compiles_natively(upstream, need, root, tmp_path, name, compiler):
    source = upstream(name)
    build_natively(need(compiler), root, source, tmp_path / "policy.so")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("hogs") / "hogs.toml"
    path.write_text(HOGS)
    return compile_workload(load_workload(str(path)), seed=1)


@pytest.mark.parametrize("name", [*IN_PACKAGE, *ELSEWHERE])
def test_simulator_and_kernel_run_it_alike(upstream, need, simulator, root, tmp_path, program, name):
    """The real kernel loads it and both give the heavy tasks the same share."""
    source = upstream(name)
    build_natively(need("cc"), root, source, tmp_path / "policy.so")
    (tmp_path / "program").write_bytes(bytes(program.data))
    done = subprocess.run(
        [simulator, "--policy", tmp_path / "policy.so", "--program", tmp_path / "program",
         "--cpus", "1", "--tick-ns", str(guest.TICK_NS), "--records", tmp_path / "run.slr"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["error"] is None
    simulated = heavy_share(read_records(tmp_path / "run.slr").events)
    try:
        policy = compile_object(source).read_bytes()
        (answer,) = guest.run_guest([guest.GuestTask(name, policy, program=bytes(program.data))])
    except UnavailableError as error:
        pytest.skip(str(error))
    assert answer.is_loaded, answer.refusal
    assert answer.disabled_reason == "unregistered from user space"
    events, end_ns = trace_records(answer.trace)
    assert end_ns == 4_000_000_000
    # A turn is 20 ms in the simulator and 24 in the kernel, where it begins microseconds
    # after a tick: 0.6 points of 3.9 s. In 2 s two of them made 2.7 points.
    assert heavy_share(events) == pytest.approx(simulated, abs=SHARE_POINTS)
    # scx_simple weighs, but only among those that wait; the others take turns.
    assert (simulated > 0.5) == (name == "scx_simple")


#: Of the schedulers with a Rust half or a launch file, those that run; docs/upstream.md has all.
AS_PUBLISHED = (
    *("central", "flatcg", "pair", "qmap", "sdt", "userland"),
    *("beerland", "bpfland", "chaos", "cosmos", "flash", "lavd", "layered", "mitosis", "p2dq"),
    *("rusty", "tickless", "wd40"),
)


@pytest.mark.parametrize("name", AS_PUBLISHED)
@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_a_checkout_runs_as_published(name, compiler, need, simulator, tmp_path, monkeypatch):
    """With what its launch file sets, on 4 CPUs of which two share a core; consistency ok."""
    folder = Path(os.environ.get("SCHEDLAB_UPSTREAM", tmp_path)) / "scheds"
    places = (folder / "c" / f"scx_{name}.bpf.c", folder / "rust" / f"scx_{name}")
    source = next((place for place in places if place.exists()), None)
    if source is None:
        pytest.skip("no checkout of sched-ext/scx; set SCHEDLAB_UPSTREAM to its folder")
    monkeypatch.setenv("CC", need(compiler))
    result = schedlab.run(
        ["mixed", "classics/requests"], str(source), cpus=4, topology="smt=2", out=tmp_path / "out"
    )
    assert [(run["policy"], run["error"], run["consistency"]) for run in result.runs.to_dicts()] == [
        (f"scx_{name}", None, "ok")
    ] * 2
    slow = schedlab.run("mixed", str(source), cpus=4, capacity="2-3=512", out=tmp_path / "slow")
    assert [(run["error"], run["consistency"]) for run in slow.runs.to_dicts()] == [(None, "ok")]


GROUPS = """
[workload]
title = "Two groups"
question = "Does a group of three times the weight get three times the CPU time?"
horizon = "4s"
tick = "1ms"
[[group]]
name = "light"
[[group]]
name = "heavy"
weight = 300
[[task]]
name = "few"
group = "heavy"
count = 3
phases = [{run = "60s"}]
[[task]]
name = "many"
group = "light"
count = 5
phases = [{run = "60s"}]
"""


def test_groups_get_their_shares(need, simulator, tmp_path):
    source = Path(os.environ.get("SCHEDLAB_UPSTREAM", tmp_path)) / "scheds" / "c" / "scx_flatcg.bpf.c"
    if not source.exists():
        pytest.skip("no checkout of sched-ext/scx; set SCHEDLAB_UPSTREAM to its folder")
    (tmp_path / "groups.toml").write_text(GROUPS)
    result = schedlab.run(str(tmp_path / "groups.toml"), str(source), cpus=2, out=tmp_path / "out")
    assert [run["error"] for run in result.runs.to_dicts()] == [None]
    heavy_ns = sum(task["run_ns"] for task in result.tasks.to_dicts() if task["name"] == "few")
    assert heavy_ns / result.tasks["run_ns"].sum() == pytest.approx(0.75, abs=SHARE_POINTS)


CELLS = """
[workload]
title = "Cells"
question = "Do the CPUs of a group become a cell, and the root has the others?"
cpus = 4
[[group]]
name = "left"
cpus = "0-1"
[[task]]
name = "mine"
group = "left"
count = 3
phases = [{loop = 50, do = [{run = "3ms"}, {sleep = "1ms"}]}]
[[task]]
name = "other"
count = 6
arrival = "1s"  # the scheduler looks for new cells now and then
phases = [{loop = 50, do = [{run = "3ms"}, {sleep = "1ms"}]}]
"""


def test_groups_with_cpus_become_cells(need, simulator, tmp_path):
    """No task of the root is kept from the group's CPUs but by the scheduler, which reads the group's cpuset."""
    source = Path(os.environ.get("SCHEDLAB_UPSTREAM", tmp_path)) / "scheds" / "rust" / "scx_mitosis"
    if not source.exists():
        pytest.skip("no checkout of sched-ext/scx; set SCHEDLAB_UPSTREAM to its folder")
    (tmp_path / "cells.toml").write_text(CELLS)
    result = schedlab.run(str(tmp_path / "cells.toml"), str(source), cpus=4, out=tmp_path / "out")
    assert [run["consistency"] for run in result.runs.to_dicts()] == ["ok"]
    (records,) = (tmp_path / "out").rglob("*.slr")
    where: dict[bool, set[int]] = {}
    for event in read_records(records).events:
        if event["kind"] == Kind.RUN:
            where.setdefault(event["task"] <= 3, set()).add(int(event["cpu"]))
    assert where == {True: {0, 1}, False: {2, 3}}


def heavy_share(events) -> float:
    """Part of the hogs' CPU time that the heavy ones got, 0 to 1."""
    stops = events[events["kind"] == Kind.STOP]
    light_ns, heavy_ns = (
        sum(int(stops["arg"][stops["task"] == pid].sum()) for pid in pids) for pids in (LIGHT, HEAVY)
    )
    return heavy_ns / (light_ns + heavy_ns)


def build_natively(compiler: str, root: Path, source: Path, target: Path) -> None:
    """Compile with the options that schedlab uses; warnings are shown, not fatal."""
    subprocess.run(
        [compiler, "-std=gnu11", "-O2", "-g", "-fPIC", "-shared", "-fno-semantic-interposition",
         "-Wall", "-Werror=implicit-function-declaration", f"-I{root / 'include'}",
         "-o", target, source],
        check=True,
    )  # fmt: skip
