# SPDX-License-Identifier: MIT
"""Tasks of a workload on Linux have their attributes where a policy looks for them."""

from __future__ import annotations

import subprocess

import pytest

from linux.attributes_map import AttributesMap
from schedlab.hosts.linux.host import read_played
from schedlab.program.compiler import compile_workload
from schedlab.workload.spec import parse_workload

TASKS = """
[workload]
title = "t"
question = "q"
jitter = "0ms"
tick = "4ms"
[[task]]
name = "rich"
tickets = 70
credits = 12
priority = 3
deadline = "5ms"
cap = 40
group = 2
phases = [{run = "1ms"}]
[[task]]
name = "changes"
phases = [{run = "1ms"}, {set = {tickets = 9}}, {set = {weight = 300}}, {spawn = "child"}, "wait"]
[[task]]
name = "child"
arrival = "spawned"
priority = 7
phases = [{run = "1ms"}]
"""
PRIORITY, TICKETS, GROUP = 1 << 0, 1 << 1, 1 << 4


@pytest.fixture
def attributes():
    held = AttributesMap()
    yield held
    held.close()


@pytest.fixture
def play(build, tmp_path):
    """Function that plays the tasks, with more words and below others; what it said, and each task by name."""
    program, result = tmp_path / "w.slprog", tmp_path / "tasks.jsonl"
    program.write_bytes(compile_workload(parse_workload(TASKS), seed=1).data)

    def start(*words, below=()):
        words = [*below, build / "hosts" / "linux" / "schedlab-play", "--program", program, "--result", result,
                 "--folder", tmp_path, *words]  # fmt: skip
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        return done, {task["name"]: task for task in read_played(result).tasks}

    return start


@pytest.mark.parametrize("options", [(), ("--threads",)])
def test_each_task_is_in_the_map_by_its_pid(attributes, play, options):
    done, tasks = play("--attributes", str(attributes.number), *options)
    assert done.returncode == 0, done.stderr
    rich, changes, child = (attributes[tasks[name]["tid"]] for name in ("rich", "changes", "child"))
    assert (rich["tickets"], rich["credits"], rich["priority"], rich["cap_percent"], rich["group"]) == (
        70,
        12,
        3,
        40,
        2,
    )
    assert rich["deadline_ns"] == 5_000_000 and rich["burst_ns"] == 0
    assert rich["given"] == PRIORITY | TICKETS | 1 << 2 | 1 << 3 | GROUP | 1 << 5
    # The weight is a nice value, and not in the map.
    assert (changes["tickets"], changes["given"]) == (9, TICKETS)
    assert (child["priority"], child["given"]) == (7, PRIORITY)


def test_without_a_policy_nothing_is_looked_for(play):
    assert play()[0].returncode == 0


def test_map_of_something_else_is_refused(play):
    other = AttributesMap(value_bytes=8)
    done, _ = play("--attributes", str(other.number))
    other.close()
    assert done.returncode == 1
    assert "does not hold struct task_attr of this version" in done.stderr


def test_map_that_is_gone_is_named(attributes, play):
    done, _ = play("--attributes", "4294967290")
    assert done.returncode == 1 and "map 4294967290 cannot be opened: No such file" in done.stderr


def test_what_it_needs_is_named(attributes, play):
    weak = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]
    done, _ = play("--attributes", str(attributes.number), below=weak)
    assert done.returncode == 1 and "needs CAP_SYS_ADMIN" in done.stderr
    done, _ = play(
        "--attributes", str(attributes.number), below=["unshare", "--pid", "--fork", "--mount-proc"]
    )
    if "unshare" in done.stderr:
        pytest.skip(f"no namespace of processes here: {done.stderr}")
    assert done.returncode == 1 and "has process numbers of its own" in done.stderr
