# SPDX-License-Identifier: MIT
"""Tasks followed through their programs: small runs written by hand, each sound and with one event changed."""

from __future__ import annotations

import pytest
from python.record_files import timeline_of

from schedlab.calibration import DEFAULT_CALIBRATION
from schedlab.metrics.course import Course, follow
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, Stop
from schedlab.workload.spec import parse_workload

HEAD = '[workload]\ntitle = "t"\nquestion = "q"\n[[lock]]\nname = "m"\n'


def followed(tasks: str, events: list, **options) -> str:
    """What is wrong with a run of a workload; times in milliseconds, of events and their amounts."""
    program = compile_workload(parse_workload(HEAD + tasks), seed=0)
    in_ns = [(e[0] * 1_000_000, *e[1:5], e[5] * 1_000_000 if e[3] == Kind.STOP else e[5]) for e in events]
    course = Course(program, DEFAULT_CALIBRATION, device=(1_000_000, 0, 0, 1), **options)
    found = follow(timeline_of(in_ns), course)
    return found.text if found else ""


def test_a_run_in_which_no_task_arrives_is_sound():
    assert followed('[[task]]\nname = "a"\narrival = "9ms"\nphases = [{run = "1ms"}]\n', []) == ""


@pytest.mark.parametrize(("wake_ms", "message"), [(3, ""), (2, "of 3000000 ns, and is woken 2000000 ns later")])
def test_a_sleep_beside_a_free_lock_is_known_by_its_place(wake_ms, message):
    """A task that must block once, and might have blocked once more, has blocked where it must."""
    events = [
        (0, 1, 0, Kind.ARRIVE, 0, 0),
        (0, 1, 0, Kind.RUN, 0, 0),
        (1, 1, 0, Kind.STOP, Stop.BLOCKED, 1),
        (1 + wake_ms, 1, 0, Kind.WAKE, 0, 0),
        (1 + wake_ms, 1, 0, Kind.RUN, 0, 0),
        (2 + wake_ms, 1, 0, Kind.STOP, Stop.EXITED, 1),
    ]
    phases = '{run = "1ms"}, {lock = "m"}, {unlock = "m"}, {sleep = "3ms"}, {run = "1ms"}'
    assert message in followed(f'[[task]]\nname = "a"\nphases = [{phases}]\n', events)
    assert bool(message) == bool(followed(f'[[task]]\nname = "a"\nphases = [{phases}]\n', events))


def test_a_waker_has_begun_to_run():
    """A task that has only arrived has signalled nothing, though its signal is the first that it does."""
    tasks = (
        '[[condition]]\nname = "c"\n[[task]]\nname = "a"\narrival = "5ms"\nphases = [{signal = "c"}, {run = "1ms"}]\n'
        '[[task]]\nname = "b"\nphases = [{run = "1ms"}, {await = "c"}, {run = "1ms"}]\n'
    )
    events = [
        (0, 2, 0, Kind.ARRIVE, 0, 0),
        (0, 2, 0, Kind.RUN, 0, 0),
        (1, 2, 0, Kind.STOP, Stop.BLOCKED, 1),
        (5, 1, 0, Kind.ARRIVE, 0, 0),
        (5, 1, 0, Kind.RUN, 0, 0),
        (5, 2, 0, Kind.WAKE, 0, 1),
        (6, 1, 0, Kind.STOP, Stop.EXITED, 1),
        (6, 2, 0, Kind.RUN, 0, 0),
        (7, 2, 0, Kind.STOP, Stop.EXITED, 1),
    ]
    assert followed(tasks, events) == ""
    events[4:6] = events[5], events[4]
    assert "blocked in 'await', is woken by task 1, which is at no op that wakes it" in followed(tasks, events)
