# SPDX-License-Identifier: MIT
"""Inheritance in a real kernel: who wakes whom is learnt there as in the simulator.

The two inversions of workloads/classics, shortened, under priority.bpf.c
without and with `inherit_ns`: one boot for all four. A wait is from the block of
the urgent task to its next run, if the task of low priority woke it.
"""

from __future__ import annotations

import pytest

from schedlab.hosts.guest import policies as guest
from schedlab.policy.bpf import compile_object
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, Stop
from schedlab.records.ftrace import trace_records
from schedlab.workload.spec import parse_workload

pytestmark = pytest.mark.full

MS = 1_000_000
#: Longer than a critical section or an answer, and a tick of the guest.
INHERIT_NS = 8 * MS
#: Workload: seed, the urgent task, the unimportant one it waits for, what is
#: shortened. With this seed the lock is met while held before it is known and after.
RUNS = {
    "inversion-lock": (9, ("high", "low"), {"loop = 60": "loop = 30", "loop = 15": "loop = 7"}),
    "inversion-pipe": (
        1,
        ("client", "server"),
        {"loop = 60": "loop = 20", "loop = 20, do = [{run": "loop = 7, do = [{run"},
    ),
}


def text_of(root, name):
    text = (root / "workloads" / "classics" / f"{name}.toml").read_text()
    for old, new in RUNS[name][2].items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def waits_ms(guest_parts, root):
    """Waits of the urgent task, by workload and whether it lends."""
    policy = compile_object(root / "policies" / "priority.bpf.c").read_bytes()
    programs = {
        name: compile_workload(parse_workload(text_of(root, name)), seed=seed)
        for name, (seed, _, _) in RUNS.items()
    }
    keys = [(name, lends) for name in RUNS for lends in (False, True)]
    answers = guest.run_guest(
        [
            guest.GuestTask(
                name=f"{name} {lends}",
                policy=policy,
                knobs={"inherit_ns": INHERIT_NS} if lends else {},
                program=bytes(programs[name].data),
            )
            for name, lends in keys
        ]
    )
    found = {}
    for (name, lends), answer in zip(keys, answers, strict=True):
        assert answer.is_loaded, answer.refusal or answer.fatal
        assert (answer.fatal, answer.results, answer.n_left) == ([], {}, 0)
        events, _ = trace_records(answer.trace)
        names = programs[name].tasks["name"].tolist()
        found[name, lends] = waits(events, *(names.index(task) + 1 for task in RUNS[name][1]))
    return found


def waits(events, urgent: int, low: int) -> list[float]:
    """Lengths in milliseconds, in order."""
    found, blocked_ns, is_by_low = [], None, False
    for event in events[events["task"] == urgent]:
        if event["kind"] == Kind.STOP and event["flags"] == Stop.BLOCKED:
            blocked_ns = int(event["t_ns"])
        elif event["kind"] == Kind.WAKE:
            is_by_low = event["arg"] == low
        elif event["kind"] == Kind.RUN and blocked_ns is not None:
            if is_by_low:
                found.append((int(event["t_ns"]) - blocked_ns) / MS)
            blocked_ns = None
    return found


@pytest.mark.parametrize(("name", "work_ms"), [("inversion-lock", 4), ("inversion-pipe", 3)])
def test_inversion_is_there_and_is_cured(waits_ms, name, work_ms):
    strict, cured = waits_ms[name, False], waits_ms[name, True]
    assert max(strict[1:]) > 50
    assert len(cured) >= 2
    # The first one teaches. A tick is 4 ms, and the work costs a little more here.
    assert cured[0] > 50
    assert max(cured[1:]) < work_ms + 4 + 0.5
