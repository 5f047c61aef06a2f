# SPDX-License-Identifier: MIT
"""Tasks followed through their programs: small runs written by hand, each sound and with one event changed."""

from __future__ import annotations

import pytest

from python.record_files import timeline_of
from schedlab.calibration import DEFAULT_CALIBRATION
from schedlab.metrics import course as course_module
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


@pytest.mark.parametrize(
    ("wake_ms", "message"), [(3, ""), (2, "of 3000000 ns, and is woken 2000000 ns later")]
)
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
    assert "blocked in 'await', is woken by task 1, which is at no op that wakes it" in followed(
        tasks, events
    )


def test_one_event_is_enough_to_be_wrong():
    """A task that the program does not have, and no event besides."""
    found = followed(
        '[[task]]\nname = "a"\narrival = "9ms"\nphases = [{run = "1ms"}]\n', [(0, 2, 0, Kind.ARRIVE, 0, 0)]
    )
    assert found.endswith("task 2 arrives, but its program has 1 tasks")


@pytest.mark.parametrize(
    ("wake_ms", "message"), [(2, ""), (1, "is woken by task 2, which is at no op that wakes it")]
)
def test_the_first_op_of_all_is_followed_to_its_waker(wake_ms, message):
    tasks = (
        '[[condition]]\nname = "c"\n[[task]]\nname = "a"\nphases = [{await = "c"}, {run = "1ms"}]\n'
        '[[task]]\nname = "b"\nphases = [{run = "2ms"}, {signal = "c"}, {run = "1ms"}]\n'
    )
    found = followed(
        tasks,
        [
            (0, 1, 0, Kind.ARRIVE, 0, 0),
            (0, 2, 0, Kind.ARRIVE, 0, 0),
            (0, 1, 0, Kind.RUN, 0, 0),
            (0, 1, 0, Kind.STOP, Stop.BLOCKED, 0),
            (0, 2, 0, Kind.RUN, 0, 0),
            (wake_ms, 1, 0, Kind.WAKE, 0, 2),
            (3, 2, 0, Kind.STOP, Stop.EXITED, 3),
            (3, 1, 0, Kind.RUN, 0, 0),
            (4, 1, 0, Kind.STOP, Stop.EXITED, 1),
        ],
    )
    assert found.endswith(message) and bool(found) == bool(message)


@pytest.mark.parametrize(
    ("op", "wake_ms", "message"),
    [
        # A timer that is due a whole period after the arrival.
        ('{timer = "10ms"}', 10, ""),
        ('{timer = "10ms"}', 11, "of 10000000 ns, and is woken 11000000 ns later"),
        ("{read = {bytes = 1, direct = true}}", 1, ""),
        (
            "{read = {bytes = 1, direct = true}}",
            2,
            "which is through with it 1000000 ns later, but it is woken after 2000000 ns",
        ),
    ],
)
def test_the_first_op_of_all_lasts_as_long_as_it_says(op, wake_ms, message):
    events = [
        (0, 1, 0, Kind.ARRIVE, 0, 0),
        (0, 1, 0, Kind.RUN, 0, 0),
        (0, 1, 0, Kind.STOP, Stop.BLOCKED, 0),
        (wake_ms, 1, 0, Kind.WAKE, 0, 0),
        (wake_ms, 1, 0, Kind.RUN, 0, 0),
        (wake_ms + 1, 1, 0, Kind.STOP, Stop.EXITED, 1),
    ]
    found = followed(f'[[task]]\nname = "a"\nphases = [{op}, {{run = "1ms"}}]\n', events)
    assert message in found and bool(found) == bool(message)


def test_a_sleep_that_is_left_out_is_placed_in_its_own_task():
    tasks = (
        '[[task]]\nname = "a"\nphases = [{run = "3ms"}]\n'
        '[[task]]\nname = "b"\nphases = [{run = "1ms"}, {sleep = "1ms"}, {run = "1ms"}]\n'
    )
    found = followed(
        tasks,
        [
            (0, 1, 0, Kind.ARRIVE, 0, 0),
            (0, 2, 0, Kind.ARRIVE, 0, 0),
            (0, 1, 0, Kind.RUN, 0, 0),
            (3, 1, 0, Kind.STOP, Stop.EXITED, 3),
            (3, 2, 0, Kind.RUN, 0, 0),
            (5, 2, 0, Kind.STOP, Stop.EXITED, 2),
        ],
    )
    assert found.endswith("task 2 goes on after 1000000 ns of CPU time, where its program blocks ('sleep')")


def test_an_arrival_is_a_ground_for_a_preemption_at_once():
    """`b` was woken long before, and `c` arrives in the instant in which `b` is chosen."""
    tasks = "".join(
        f'[[task]]\nname = "{name}"\narrival = "{at}ms"\nphases = [{{run = "{ms}ms"}}]\n'
        for name, at, ms in (("a", 0, 2), ("b", 1, 1), ("c", 2, 1))
    )
    events = [
        (0, 1, 0, Kind.ARRIVE, 0, 0),
        (0, 1, 0, Kind.RUN, 0, 0),
        (1, 2, 0, Kind.ARRIVE, 0, 0),
        (2, 1, 0, Kind.STOP, Stop.EXITED, 2),
        (2, 2, 0, Kind.RUN, 0, 0),
        (2, 3, 0, Kind.ARRIVE, 0, 0),
        (2, 2, 0, Kind.STOP, Stop.PREEMPTED, 0),
        (2, 3, 0, Kind.RUN, 0, 0),
        (3, 3, 0, Kind.STOP, Stop.EXITED, 1),
        (3, 2, 0, Kind.RUN, 0, 0),
        (4, 2, 0, Kind.STOP, Stop.EXITED, 1),
    ]
    assert followed(tasks, events) == ""
    events[5] = (1, 3, 0, Kind.ARRIVE, 0, 0)
    events.insert(3, events.pop(5))
    tasks = tasks.replace('"2ms"\nphases = [{run = "1ms"}]', '"1ms"\nphases = [{run = "1ms"}]')
    assert "task 2 is preempted by nothing" in followed(tasks, events)


def test_a_task_that_yields_may_preempt_the_one_that_gets_the_cpu():
    """As under `srtf`: `a` is enqueued with nothing left, before which `b`, which was chosen meanwhile, gives way."""
    tasks = (
        '[[task]]\nname = "a"\nphases = [{run = "2ms"}, "yield"]\n'
        '[[task]]\nname = "b"\nphases = [{run = "1ms"}]\n'
    )
    events = [
        (0, 1, 0, Kind.ARRIVE, 0, 0),
        (0, 2, 0, Kind.ARRIVE, 0, 0),
        (0, 1, 0, Kind.RUN, 0, 0),
        (2, 1, 0, Kind.STOP, Stop.YIELDED, 2),
        (2, 2, 0, Kind.RUN, 0, 0),
        (2, 2, 0, Kind.STOP, Stop.PREEMPTED, 0),
        (2, 1, 0, Kind.RUN, 0, 0),
        (2, 1, 0, Kind.STOP, Stop.EXITED, 0),
        (2, 2, 0, Kind.RUN, 0, 0),
        (3, 2, 0, Kind.STOP, Stop.EXITED, 1),
    ]
    assert followed(tasks, events) == ""
    # Its own is no ground: here nobody else has come.
    alone = '[[task]]\nname = "a"\nphases = [{run = "2ms"}, "yield", {run = "1ms"}]\n'
    events = [
        (0, 1, 0, Kind.ARRIVE, 0, 0),
        (0, 1, 0, Kind.RUN, 0, 0),
        (2, 1, 0, Kind.STOP, Stop.YIELDED, 2),
        (2, 1, 0, Kind.RUN, 0, 0),
        (2, 1, 0, Kind.STOP, Stop.PREEMPTED, 0),
        (2, 1, 0, Kind.RUN, 0, 0),
        (3, 1, 0, Kind.STOP, Stop.EXITED, 1),
    ]
    assert "task 1 is preempted by nothing" in followed(alone, events)


def test_children_of_two_parents_come_in_any_order():
    tasks = (
        '[[task]]\nname = "p"\ncount = 2\nphases = [{run = "1ms"}, {spawn = "k"}]\n'
        '[[task]]\nname = "k"\narrival = "spawned"\nphases = [{run = "1ms"}]\n'
    )
    first, second = (
        [(at, parent, 0, Kind.RUN, 0, 0), (at + 1, child, 0, Kind.ARRIVE, 0, parent),
         (at + 1, parent, 0, Kind.STOP, Stop.EXITED, 1), (at + 1, child, 0, Kind.RUN, 0, 0),
         (at + 2, child, 0, Kind.STOP, Stop.EXITED, 1)]
        for at, parent, child in ((0, 2, 4), (2, 1, 3))
    )  # fmt: skip
    arrivals = [(0, 1, 0, Kind.ARRIVE, 0, 0), (0, 2, 0, Kind.ARRIVE, 0, 0)]
    assert followed(tasks, [*arrivals, *first, *second]) == ""


@pytest.mark.parametrize("cells_max", [0, 100])
def test_where_no_task_can_be_followed_nothing_is_said(monkeypatch, cells_max):
    """The program is too long for it, or no task has run yet."""
    monkeypatch.setattr(course_module, "CELLS_MAX", cells_max)
    task = '[[task]]\nname = "a"\nphases = [{run = "1ms"}, {sleep = "1ms"}, {run = "1ms"}]\n'
    events = [(0, 1, 0, Kind.ARRIVE, 0, 0), (0, 1, 0, Kind.RUN, 0, 0), (2, 1, 0, Kind.STOP, Stop.EXITED, 2)]
    assert followed(task, events[:1]) == ""
    assert bool(followed(task, events)) == (cells_max > 0)
