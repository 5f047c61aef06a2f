# SPDX-License-Identifier: MIT
"""The consistency check: every kind of corruption is caught, and nothing lawful is."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from python.record_files import timeline_of
from python.reference_scheduler import schedule, work_of
from schedlab.metrics.consistency import SPAWNED, Expectations, check
from schedlab.records.file import Kind, Overhead, Stop

#: Two CPUs, three tasks; written out so that a corruption can be put in by hand.
LAWFUL = [
    (0, 1, 0, Kind.ARRIVE, 0, 0),
    (0, 2, 0, Kind.ARRIVE, 0, 0),
    (0, 3, 0, Kind.ARRIVE, 0, 0),
    (0, 1, 0, Kind.RUN, 0, 0),
    (0, 2, 1, Kind.RUN, 0, 0),
    (10, 1, 0, Kind.STOP, Stop.PREEMPTED, 10),
    (12, 0, 0, Kind.OVERHEAD, Overhead.SWITCH, 2),
    (12, 3, 0, Kind.RUN, 0, 0),
    (15, 0, 1, Kind.OVERHEAD, Overhead.TICK, 1),
    (20, 2, 1, Kind.STOP, Stop.BLOCKED, 19),
    (20, 1, 1, Kind.MIGRATE, 0, 0),
    (20, 1, 1, Kind.RUN, 0, 0),
    (30, 1, 1, Kind.STOP, Stop.EXITED, 10),
    (32, 3, 0, Kind.STOP, Stop.EXITED, 20),
    (40, 2, 1, Kind.WAKE, 0, 0),
    (40, 2, 1, Kind.RUN, 0, 0),
    (50, 2, 1, Kind.STOP, Stop.EXITED, 10),
]
EXPECTED = Expectations(
    work_ns=[20, 29, 20],
    arrival_ns=[0, 0, 0],
    work_conserving=True,
    host_cpus=[
        {"busy_ns": 30, "idle_ns": 18, "overhead_ns": 2},
        {"busy_ns": 39, "idle_ns": 10, "overhead_ns": 1},
    ],
)


def verdict(events, expected=EXPECTED, *, n_cpus=2, end_ns=50):
    return check(timeline_of(events, n_cpus=n_cpus, end_ns=end_ns), expected)


def changed(row, **fields):
    """LAWFUL with some fields of one event changed."""
    names = ("t_ns", "task", "cpu", "kind", "flags", "arg")
    event = dict(zip(names, LAWFUL[row], strict=True)) | fields
    return [*LAWFUL[:row], tuple(event[name] for name in names), *LAWFUL[row + 1 :]]


def without(*rows):
    return [event for row, event in enumerate(LAWFUL) if row not in rows]


def added(row, event):
    return [*LAWFUL[:row], event, *LAWFUL[row:]]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        # Lives of tasks.
        (without(2), "at 12 ns, CPU 0: task 3 runs, but it had not arrived"),
        (added(5, (5, 1, 0, Kind.ARRIVE, 0, 0)), "at 5 ns, CPU 0: task 1 arrives, but it was running"),
        (added(6, (10, 1, 0, Kind.WAKE, 0, 0)), "task 1 wakes, but it was already waiting"),
        (added(14, (35, 1, 1, Kind.WAKE, 0, 0)), "at 35 ns, CPU 1: task 1 wakes, but it had ended"),
        (without(14), "at 40 ns, CPU 1: task 2 runs, but it was blocked"),
        (changed(15, task=1), "at 40 ns, CPU 1: task 1 runs, but it had ended"),
        (added(5, (5, 1, 1, Kind.RUN, 0, 0)), "at 5 ns, CPU 1: task 1 runs while it also runs on CPU 0"),
        (changed(9, cpu=0), "at 20 ns, CPU 0: task 2 stops, but it was running on CPU 1"),
        (without(3), "task 1 stops, but it had only arrived"),
        (changed(5, flags=Stop.BLOCKED), "at 20 ns, CPU 1: task 1 runs, but it was blocked"),
        (
            changed(12, flags=Stop.YIELDED),
            "at 30 ns, CPU 1: task 1 was already waiting for a CPU and never ended: it was lost",
        ),
        # CPUs.
        (changed(4, cpu=0), "at 0 ns, CPU 0: task 2 runs while task 1 runs there"),
        (changed(7, cpu=1), "at 12 ns, CPU 1: task 3 runs while task 2 runs there"),
        # Time.
        (changed(5, arg=11), "task 1 claims 11 ns of CPU time and 0 ns of overhead in a run of 10 ns"),
        (changed(5, arg=9), "at 10 ns, CPU 0: task 1 claims 9 ns"),
        (changed(9, arg=20), "task 2 claims 20 ns of CPU time and 1 ns of overhead in a run of 20 ns"),
        (changed(5, arg=(1 << 64) - 1), "claims -1 ns"),
        (without(8), "task 2 claims 19 ns of CPU time and 0 ns"),
        (changed(6, arg=3), "at 12 ns, CPU 0: 3 ns of overhead between two runs that are 2 ns apart"),
        # Tasks against the program.
        (without(15, 16), "at 40 ns, CPU 1: task 2 was already awake and never ended: it was lost"),
        (without(16), "at 40 ns, CPU 1: task 2 was running and never ended"),
        (changed(0, t_ns=0, task=4), "task 1 runs, but it had not arrived"),
        (added(6, (10, 0, 0, Kind.LOST, 0, 3)), "at 10 ns, CPU 0: 3 records were lost"),
    ],
)
def test_corruption_is_caught(events, message):
    assert message in verdict(events)


def test_lawful_is_ok():
    assert verdict(LAWFUL) == "ok"
    assert check(timeline_of([], end_ns=3)) == "ok"
    assert check(timeline_of(LAWFUL, n_cpus=2)) == "ok"


def replaced(**fields):
    return Expectations(**{**EXPECTED.__dict__, **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"work_ns": [20, 28, 20]}, "task 2 received 29 ns of CPU time, but its program is 28 ns"),
        ({"work_ns": [20, 30, 20]}, "task 2 received 29 ns of CPU time, but its program is 30 ns"),
        ({"work_ns": [20, 30, 20], "has_host_work": [False, True, False]}, "is 30 ns of work"),
        ({"work_ns": [20, 28, 20], "has_host_work": [False, True, False]}, "ok"),
        ({"work_ns": [20, -1, 20]}, "ok"),
        ({"work_ns": [0, 29, 20]}, "task 1 received 20 ns of CPU time, but its program is 0 ns"),
        # Each stop may be off by the tolerance; task 2 has two.
        ({"work_ns": [20, 31, 20], "tolerance_ns": 1}, "ok"),
        (
            {"work_ns": [20, 32, 20], "tolerance_ns": 1},
            "task 2 received 29 ns of CPU time, but its program is 32 ns",
        ),
        ({"work_ns": [20, 30, 20], "has_host_work": [True] * 3, "clock_ns": [20, 30, 20]}, "ok"),
        (
            {"work_ns": [20, 30, 20], "has_host_work": [True] * 3, "clock_ns": [20, 29, 20]},
            "is 30 ns of work",
        ),
        ({"arrival_ns": [0, 0, 0, 7]}, "at 7 ns: task 4 should have arrived but never did"),
        ({"arrival_ns": [0, 0, 0, 49]}, "at 49 ns: task 4 should have arrived but never did"),
        ({"arrival_ns": [0, 0, 0, 50]}, "ok"),
        ({"arrival_ns": [0, 0, 0, SPAWNED]}, "at 50 ns: task 4 should have arrived but never did"),
        ({"arrival_ns": [0, 0, 0, SPAWNED], "horizon_ns": 50}, "ok"),
        ({"arrival_ns": [0, 5, 0]}, "at 0 ns, CPU 0: task 2 arrives, but its program says 5 ns"),
        ({"affinity": [None, (0,), None]}, "at 0 ns, CPU 1: task 2 runs where its affinity forbids"),
        ({"affinity": [None, (1,), (0,)]}, "ok"),
        ({"host_cpus": EXPECTED.host_cpus[:1]}, "the host accounts for 1 CPUs"),
        (
            {"host_cpus": [{"busy_ns": 30, "idle_ns": 17, "overhead_ns": 3}, EXPECTED.host_cpus[1]]},
            "CPU 0: the host counted overhead_ns = 3, its records add up to 2",
        ),
        (
            {"host_cpus": [EXPECTED.host_cpus[0], {"busy_ns": 38, "idle_ns": 10, "overhead_ns": 1}]},
            "CPU 1: the host counted busy_ns = 38, its records add up to 39",
        ),
    ],
)
def test_expectations_are_held(fields, message):
    assert message in verdict(LAWFUL, replaced(**fields))


def test_an_arrival_is_neither_early_nor_late():
    """Planned at 5: a host may be late by what it states, and early by the error of its clock."""

    def arriving(t_ns, **fields):
        events = [
            (t_ns, 1, 0, Kind.ARRIVE, 0, 0),
            (t_ns, 1, 0, Kind.RUN, 0, 0),
            (t_ns + 2, 1, 0, Kind.STOP, Stop.EXITED, 2),
        ]
        return check(timeline_of(events), Expectations(arrival_ns=[5], **fields))

    assert arriving(5) == "ok"
    assert "at 6 ns, CPU 0: task 1 arrives, but its program says 5 ns" in arriving(6)
    assert "at 4 ns, CPU 0: task 1 arrives" in arriving(4)
    assert arriving(9, latency_ns=3, tolerance_ns=1) == "ok"
    assert "at 10 ns" in arriving(10, latency_ns=3, tolerance_ns=1)
    assert arriving(4, tolerance_ns=1) == "ok"
    assert "at 4 ns" in arriving(4, latency_ns=3)


def test_work_faster_than_one_cpu_is_caught():
    # Report 1's claim in small: 20 ns of work in 15 ns on one CPU, in records
    # whose every STOP agrees with its RUN is impossible, so the STOP must lie.
    events = [(0, 1, 0, Kind.ARRIVE, 0, 0), (0, 1, 0, Kind.RUN, 0, 0), (15, 1, 0, Kind.STOP, Stop.EXITED, 20)]
    assert "claims 20 ns" in check(timeline_of(events), Expectations(work_ns=[20]))
    honest = [*events[:2], (15, 1, 0, Kind.STOP, Stop.EXITED, 15)]
    assert "received 15 ns" in check(timeline_of(honest), Expectations(work_ns=[20]))


def test_the_horizon_excuses_what_is_open():
    events = [*LAWFUL[:5], *((7, e[1], e[2], Kind.STOP, Stop.HORIZON, 7) for e in LAWFUL[3:5])]
    cut = Expectations(work_ns=[20, 29, 20], arrival_ns=[0, 0, 0], horizon_ns=7)
    assert verdict(events, cut, end_ns=7) == "ok"
    assert "never ended" in verdict(events, Expectations(horizon_ns=8), end_ns=7)
    open_end = verdict(LAWFUL[:5], Expectations(horizon_ns=7), end_ns=7)
    assert "was running when the run was cut off, but no STOP says so" in open_end
    exceeded = Expectations(work_ns=[6, 29, 20], horizon_ns=7)
    assert "received 7 ns" in verdict(events, exceeded, end_ns=7)


# ---- work conservation ------------------------------------------------------

LAZY = [
    (0, 1, 0, Kind.ARRIVE, 0, 0),
    (0, 2, 0, Kind.ARRIVE, 0, 0),
    (0, 1, 0, Kind.RUN, 0, 0),
    (10, 1, 0, Kind.STOP, Stop.EXITED, 10),
    (10, 2, 0, Kind.RUN, 0, 0),
    (20, 2, 0, Kind.STOP, Stop.EXITED, 10),
]


def lazy(n_cpus=2, **fields):
    return verdict(LAZY, Expectations(work_conserving=True, **fields), n_cpus=n_cpus, end_ns=20)


def test_an_idle_cpu_beside_a_waiting_task_is_caught():
    assert lazy() == (
        "at 0 ns, CPU 1: idle for 10 ns while task 2 waited and could have run there, as "
        "under no work-conserving policy"
    )
    assert verdict(LAZY, Expectations(), end_ns=20) == "ok"
    assert lazy(n_cpus=1) == "ok"


def test_affinity_caps_and_latency_excuse_it():
    assert lazy(affinity=[None, (0,)]) == "ok"
    assert "task 2 waited" in lazy(affinity=[(0,), None])
    assert "CPU 2" in lazy(n_cpus=3, affinity=[None, (0, 2)])
    assert lazy(is_capped=[False, True]) == "ok"
    assert "task 2 waited" in lazy(is_capped=[True, False])
    assert lazy(latency_ns=10) == "ok"
    assert "at 9 ns, CPU 1: idle for 1 ns" in lazy(latency_ns=9)
    # Or 1 ns would look like less than the host may take.
    assert lazy(latency_ns=9).endswith("(after 9 ns in which it may go unnoticed here)")


def test_a_policy_is_not_asked_about_a_task_that_exits():
    # Of the 10 ns that the task waits for, 9 may be its exit, which the kernel keeps on its CPU; or all.
    assert "task 2 waited" in lazy(exit_ns=9)
    assert lazy(exit_ns=10) == "ok"
    # One that never gets there is not one that exits.
    never = [*LAZY[:4], (20, 1, 0, Kind.NOTE, 0, 0)]
    expected = Expectations(work_conserving=True, exit_ns=10, is_cut=True)
    assert "task 2 waited" in verdict(never, expected, end_ns=20)


def test_a_forgotten_wakeup_is_caught_where_it_begins():
    events = [
        (0, 1, 0, Kind.ARRIVE, 0, 0),
        (0, 1, 0, Kind.RUN, 0, 0),
        (5, 1, 0, Kind.STOP, Stop.BLOCKED, 5),
        (7, 1, 0, Kind.WAKE, 0, 0),
        (9, 1, 0, Kind.RUN, 0, 0),
        (12, 1, 0, Kind.STOP, Stop.EXITED, 3),
    ]
    text = check(timeline_of(events), Expectations(work_conserving=True))
    assert text.startswith("at 7 ns, CPU 0: idle for 2 ns while task 1 waited")
    # The scheduler's own time is not idleness.
    events.insert(4, (9, 0, 0, Kind.OVERHEAD, Overhead.SWITCH, 2))
    assert check(timeline_of(events), Expectations(work_conserving=True)) == "ok"


def test_a_task_that_waits_for_ever_beside_an_idle_cpu_is_caught():
    events = [(3, 1, 0, Kind.ARRIVE, 0, 0)]
    expected = Expectations(work_conserving=True, horizon_ns=9)
    text = check(timeline_of(events, end_ns=9), expected)
    assert "at 3 ns, CPU 0: idle for 6 ns while task 1" in text


# ---- on schedules made by another program -----------------------------------


def task_sets():
    run = st.tuples(st.just("run"), st.integers(1, 30))
    sleep = st.tuples(st.just("sleep"), st.integers(1, 30))
    pairs = st.lists(st.tuples(run, sleep), max_size=3).map(lambda p: [x for two in p for x in two])
    task = st.tuples(st.integers(0, 40), st.tuples(pairs, run).map(lambda p: [*p[0], p[1]]))
    return st.lists(task, min_size=1, max_size=6)


def made(tasks, n_cpus, slice_ns):
    events, end_ns = schedule(tasks, n_cpus=n_cpus, slice_ns=slice_ns)
    expected = Expectations(
        work_ns=work_of(tasks), arrival_ns=[arrival for arrival, _ in tasks], work_conserving=True
    )
    return events, end_ns, expected


@settings(max_examples=80, deadline=None)
@given(tasks=task_sets(), n_cpus=st.integers(1, 3), slice_ns=st.integers(1, 40))
def test_an_honest_scheduler_is_never_accused(tasks, n_cpus, slice_ns):
    events, end_ns, expected = made(tasks, n_cpus, slice_ns)
    assert check(timeline_of(events, n_cpus=n_cpus, end_ns=end_ns), expected) == "ok"


@settings(max_examples=150, deadline=None)
@given(data=st.data(), tasks=task_sets(), n_cpus=st.integers(1, 3), slice_ns=st.integers(1, 40))
def test_any_dropped_or_doubled_event_is_caught(data, tasks, n_cpus, slice_ns):
    events, end_ns, expected = made(tasks, n_cpus, slice_ns)
    row = data.draw(st.integers(0, len(events) - 1), label="row")
    assume(events[row][3] != Kind.MIGRATE)  # counts, but decides nothing
    copies = data.draw(st.sampled_from([0, 2]), label="copies")
    broken = events[:row] + [events[row]] * copies + events[row + 1 :]
    assert check(timeline_of(broken, n_cpus=n_cpus, end_ns=end_ns), expected) != "ok"


@settings(max_examples=150, deadline=None)
@given(data=st.data(), tasks=task_sets(), n_cpus=st.integers(1, 3), slice_ns=st.integers(1, 40))
def test_any_changed_amount_of_cpu_time_is_caught(data, tasks, n_cpus, slice_ns):
    events, end_ns, expected = made(tasks, n_cpus, slice_ns)
    stops = [row for row, event in enumerate(events) if event[3] == Kind.STOP]
    row = data.draw(st.sampled_from(stops), label="row")
    by = data.draw(st.integers(-30, 30).filter(bool), label="by")
    event = events[row]
    assume(event[5] + by >= 0)
    broken = [*events[:row], (*event[:5], event[5] + by), *events[row + 1 :]]
    assert "claims" in check(timeline_of(broken, n_cpus=n_cpus, end_ns=end_ns), expected)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), tasks=task_sets(), slice_ns=st.integers(1, 40))
def test_any_event_on_another_cpu_is_caught(data, tasks, slice_ns):
    events, end_ns, expected = made(tasks, 2, slice_ns)
    rows = [row for row, event in enumerate(events) if event[3] in (Kind.RUN, Kind.STOP)]
    row = data.draw(st.sampled_from(rows), label="row")
    event = events[row]
    broken = [*events[:row], (*event[:2], 1 - event[2], *event[3:]), *events[row + 1 :]]
    assert check(timeline_of(broken, n_cpus=2, end_ns=end_ns), expected) != "ok"
