# SPDX-License-Identifier: MIT
"""What happens to the machine, as a workload says it: `[[event]]`."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import schedlab
from schedlab.errors import UsageError
from schedlab.workload.events import KINDS

WORKLOAD = """
[workload]
cpus = 2
jitter = "0s"
tick = "1ms"
[[group]]
name = "g"
[[task]]
name = "s"
count = 3
phases = [{loop = 20, do = [{run = "3ms"}, {sleep = "1ms"}]}]
[[task]]
name = "b"
affinity = [1]
phases = [{run = "40ms"}]
"""
KEYS = {
    "take": 'cpu = 1\nat = "5ms"\ntime = "20ms"', "offline": 'cpu = 1\nat = "5ms"\ntime = "20ms"',
    "pin": 'cpu = 1\nat = "5ms"\ntime = "10ms"', "kick": 'cpu = 0\nat = "5ms"\ntime = "10ms"',
    "reload": 'at = "20ms"\ntime = "5ms"', "fail": "calls = 1", "exit": 'time = "7ms"', "thread": 'task = "b"',
    "skew": 'cpu = 1\ntime = "50ns"', "start": 'time = "2h"',
    "weight": 'group = "g"\nat = "5ms"\nweight = 300', "quota": 'group = "g"\nat = "5ms"\nquota = "20ms"',
}  # fmt: skip
AT_ONCE = {
    "take": 'cpu = 1\ntime = "5ms"',
    "pin": 'cpu = 0\ntime = "10ms"',
    "fail": "",
    "kick": 'cpu = 0\ntime = "1ms"',
}


def run(folder: Path, text: str, policy: str = "rr", **more) -> dict:
    """The run of a workload."""
    (folder / "w.toml").write_text(WORKLOAD + text)
    result = schedlab.run(folder / "w.toml", policy, out=folder / "out", **more)
    return json.loads((Path(result.runs["directory"][0]) / "run.json").read_text())


def event(kind: str) -> str:
    """The table of one."""
    return f'[[event]]\nkind = "{kind}"\n{KEYS[kind]}\n'


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_event_is_in_the_run(kind, tmp_path, simulator):
    said = run(tmp_path, event(kind))
    assert (said["error"], said["consistency"], said["events"].partition(":")[0]) == (None, "ok", kind)
    plain = run(tmp_path, "")
    assert "events" not in plain
    changes = kind in ("take", "offline", "exit")
    assert (said["metrics"]["makespan_ns"] > plain["metrics"]["makespan_ns"]) is changes


def test_a_cpu_is_taken_as_by_the_option(tmp_path, simulator):
    named, given = run(tmp_path, event("take")), run(tmp_path, "", above=["1:5ms:20ms"])
    assert named["metrics"] == given["metrics"]


def test_events_at_once_at_the_beginning(tmp_path, simulator):
    """One that comes later has not begun by then."""
    first = "".join(f"[[event]]\nkind = {kind!r}\n{keys}\n" for kind, keys in AT_ONCE.items())
    assert run(tmp_path, first + event("pin") + event("reload"))["error"] is None


PAIR = """
[workload]
title = "Two that talk, in step with the tries, and one that sleeps"
question = "Do the two enable migration again?"
tick = "1ms"
cpus = 1
jitter = "0s"
horizon = "1s"

[[pipe]]
name = "there"
[[pipe]]
name = "back"

[[task]]
name = "a"
phases = [{loop = "forever", do = [{run = "500us"}, {send = "there"}, {recv = "back"}]}]
[[task]]
name = "c"
phases = [{loop = "forever", do = [{recv = "there"}, {run = "500us"}, {send = "back"}]}]
[[task]]
name = "b"
phases = [{loop = "forever", do = [{run = "1ms"}, {sleep = "1ms"}]}]

[[event]]
kind = "pin"
cpu = 0
at = "500us"
time = "500us"
[[event]]
kind = "pin"
cpu = 0
at = "201ms"
time = "500us"
"""


def test_tasks_in_step_with_one_another_enable_migration_again(tmp_path, simulator):
    """While both have it disabled, sched_ext puts them into the local queue, and nothing comes between."""
    (tmp_path / "w.toml").write_text(PAIR)
    result = schedlab.run(tmp_path / "w.toml", "rr", out=tmp_path / "out")
    b = result.tasks.filter(pl.col("name") == "b")
    assert b["wait_ns_max"].item() < 20 * 1_000_000 and b["run_ns"].item() > 250 * 1_000_000


def test_hosts_without_an_event_refuse_it_by_name(tmp_path):
    for host in ("uthreads", "kernel", "linux", "wasm"):
        with pytest.raises(
            UsageError, match="workload 'w' has events of kind take, kick, which only --host sim has"
        ):
            run(tmp_path, event("take") + event("kick"), host=host)
    with pytest.raises(UsageError, match="has events of kind kick, which"):
        run(tmp_path, event("take") + event("kick"), host="guest")
    with pytest.raises(UsageError, match="has events of kind take, which .* not in its sandbox"):
        run(tmp_path, event("take"), sandbox=True)
    (tmp_path / "i.toml").write_text(WORKLOAD.replace("cpus = 2", 'cpus = 2\ninterleaving = "1:5"'))
    with pytest.raises(UsageError, match="workload 'i' has an interleaving, which only --host sim has"):
        schedlab.run(tmp_path / "i.toml", "rr", host="guest", out=tmp_path / "out")


def test_a_cpu_that_the_machine_lacks_is_refused(tmp_path, simulator):
    with pytest.raises(UsageError, match="needs at least 2 CPUs"):
        run(tmp_path, event("take"), cpus=1)
