# SPDX-License-Identifier: MIT
"""Locks, conditions, pipes and barriers of a program: on threads as in the simulator.

One CPU, fifo, and no task that waits for a time: so each task is woken by the same task, and
stops for the same reason, in the same order, however long anything takes.
"""

from __future__ import annotations

import pytest

from schedlab.hosts.choose import open_host
from schedlab.hosts.host import Job
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, read_records
from schedlab.workload.spec import parse_workload

HEAD = '[workload]\ntitle = "T"\nquestion = "Q?"\njitter = "0ms"\n'

#: `w` is signalled before `b` asks for the lock, and so has it before `b`.
SIGNALLED = """
[[lock]]
name = "m"
[[condition]]
name = "c"
[[task]]
name = "w"
phases = [{lock = "m"}, {await = {condition = "c", lock = "m"}}, {unlock = "m"}]
[[task]]
name = "a"
phases = [{lock = "m"}, {signal = "c"}, {yield = true}, {unlock = "m"}]
[[task]]
name = "b"
phases = [{lock = "m"}, {unlock = "m"}]
"""

#: Messages larger than the pipe, of two senders, and a barrier at the end.
PIPE = """
[[pipe]]
name = "p"
capacity = 100
[[barrier]]
name = "end"
parties = 4
[[task]]
name = "s"
count = 2
phases = [{loop = 5, do = [{send = {pipe = "p", bytes = 250}}]}, {barrier = "end"}]
[[task]]
name = "r"
count = 2
phases = [{loop = 25, do = [{recv = {pipe = "p", bytes = 50}}]}, {barrier = "end"}]
"""

DEADLOCK = """
[[lock]]
name = "m"
[[condition]]
name = "c"
[[pipe]]
name = "p"
capacity = 100
[[task]]
name = "early"
phases = [{signal = "c"}]
[[task]]
name = "a"
phases = [{lock = "m"}, {await = "c"}, {unlock = "m"}]
[[task]]
name = "b"
phases = [{lock = "m"}, {unlock = "m"}]
[[task]]
name = "r"
phases = [{recv = "p"}]
[[task]]
name = "s"
phases = [{lock = "m"}, {send = "p"}, {unlock = "m"}]
"""


@pytest.fixture
def run(build, tmp_path):
    """Function that runs a workload on a host: how it ended, and what happened in which order."""

    def do(host, text):
        program, records = tmp_path / "program", tmp_path / f"{host}.records"
        compiled = compile_workload(parse_workload(HEAD + text), seed=1)
        compiled.save(program)
        session = open_host(host).session(timeout_seconds=60)
        outcome = session.run(
            Job(
                label="fifo",
                policy=build_policy(load_policy("fifo")),
                program=program,
                records=records,
                n_cpus=1,
                seed=1,
                tick_ns=1_000_000,
            )
        )
        session.close()
        names = [str(name) for name in compiled.tasks["name"]]
        events = read_records(records).events
        return outcome, [
            (
                names[event["task"] - 1],
                Kind(event["kind"]).name,
                int(event["flags"]),
                int(event["arg"]) if event["kind"] == Kind.WAKE else None,
            )
            for event in events
            if event["kind"] in (Kind.WAKE, Kind.STOP)
        ]

    return do


def waits_of(outcome):
    return set(outcome.error.split("wait: ")[1].split(", "))


@pytest.mark.parametrize("text", [SIGNALLED, PIPE], ids=["signalled", "pipe"])
def test_threads_wake_each_other_as_in_the_simulator(run, text):
    outcome, happened = run("uthreads", text)
    assert outcome.error is None
    assert happened == run("sim", text)[1]


def test_a_deadlock_says_what_each_thread_waits_for(run):
    outcome, _ = run("uthreads", DEADLOCK)
    assert outcome.error_kind == "deadlock"
    expected = run("sim", DEADLOCK)[0]
    assert waits_of(outcome) == waits_of(expected)
