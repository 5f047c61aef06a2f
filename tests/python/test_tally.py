# SPDX-License-Identifier: MIT
"""What Linux counted of tasks: metrics by hand, and what no machine can do."""

from __future__ import annotations

import numpy as np
import pytest

from schedlab.metrics import tally

MS = 1_000_000
TASKS = [
    {"task": 2, "arrival_ns": 0, "first_run_ns": 0, "end_ns": 40 * MS, "wait_ns": 10 * MS, "run_ns": 20 * MS,
     "voluntary_switches": 3, "involuntary_switches": 1},
    {"task": 1, "arrival_ns": 10 * MS, "first_run_ns": 15 * MS, "end_ns": 100 * MS, "wait_ns": 60 * MS,
     "run_ns": 30 * MS, "voluntary_switches": 2, "involuntary_switches": 4},
    {"task": 3, "arrival_ns": 20 * MS, "first_run_ns": None, "end_ns": None, "wait_ns": 100 * MS, "run_ns": 0,
     "voluntary_switches": 0, "involuntary_switches": 0},
    {"task": 4, "arrival_ns": None, "first_run_ns": None, "end_ns": None, "wait_ns": 0, "run_ns": 0,
     "voluntary_switches": 0, "involuntary_switches": 0},
]  # fmt: skip


def changed(i: int, **values) -> list[dict]:
    """The tasks above with other values of one."""
    return [{**task, **values} if n == i else task for n, task in enumerate(TASKS)]


def test_columns_by_hand():
    columns = tally.columns_of(TASKS)
    assert columns["task"].tolist() == [2, 1, 3]
    assert columns["turnaround_ns"].tolist() == [40 * MS, 90 * MS, -1]
    assert columns["response_ns"].tolist() == [0, 5 * MS, -1]
    # Turnaround by what it would have been without waiting.
    assert columns["slowdown"] == pytest.approx([4 / 3, 3, np.nan], nan_ok=True)


def test_the_first_instant_counts():
    """A task that has run and ended at 0 ns has done so."""
    columns = tally.columns_of(changed(0, end_ns=0, wait_ns=0, run_ns=0))
    assert columns["turnaround_ns"][0] == 0 and columns["response_ns"][0] == 0
    assert np.isnan(columns["slowdown"][0])
    assert tally.tally_metrics(columns, n_cpus=1, elapsed_ns=200 * MS).run["tasks_ended"] == 2


def test_metrics_by_hand():
    run = tally.tally_metrics(tally.columns_of(TASKS), n_cpus=2, elapsed_ns=120 * MS).run
    expected = {
        "turnaround_ns_mean": 65 * MS, "response_ns_mean": 2.5 * MS, "wait_ns_mean": 170 / 3 * MS,
        "slowdown_mean": (4 / 3 + 3) / 2, "slowdown_max": 3, "throughput_per_s": 2 / 0.12, "makespan_ns": 120 * MS,
        "cpu_utilisation": 50 / 240, "switches_voluntary": 5, "switches_involuntary": 5, "tasks": 3,
        "tasks_started": 2, "tasks_ended": 2, "elapsed_ns": 120 * MS, "busy_ns": 50 * MS,
        # (40 + 90)^2 by twice the sum of squares.
        "fairness_turnaround_jain": 130**2 / (2 * (40**2 + 90**2)),
    }  # fmt: skip
    assert {name: run[name] for name in expected} == pytest.approx(expected)
    assert run["wakeup_ns_mean"] is None, "Linux counts no single wake-ups"


def test_the_makespan_is_of_the_tasks_where_all_have_ended():
    """From the first arrival to the last end, and not to the end of the run."""
    ended = [{**task, "arrival_ns": task["arrival_ns"] + MS} for task in TASKS[:2]]
    run = tally.tally_metrics(tally.columns_of(ended), n_cpus=1, elapsed_ns=120 * MS).run
    assert run["makespan_ns"] == 99 * MS
    assert run["throughput_per_s"] == pytest.approx(2 / 0.099)


def test_a_run_without_tasks_has_no_rates():
    run = tally.tally_metrics(tally.columns_of(TASKS[3:]), n_cpus=1, elapsed_ns=0).run
    assert (run["tasks"], run["makespan_ns"]) == (0, 0)
    assert run["throughput_per_s"] is None and run["cpu_utilisation"] is None and run["slowdown_mean"] is None


#: Each at its limit, in nanoseconds, and one beyond: 1 ms is what two clocks may differ by.
LIMITS = [
    ("first_run_ns", 15 * MS, 10 * MS, 10 * MS - 1, "task 1: it ran before it arrived"),
    ("first_run_ns", 15 * MS, 100 * MS, 100 * MS + 1, "task 1: it ended before it ran"),
    ("run_ns", 30 * MS, 91 * MS, 91 * MS + 1, "task 1: it used more CPU time than passed"),
    ("run_ns", 30 * MS, 29 * MS, 29 * MS - 1, "task 1: it ended before its work was done"),
]
WORK_NS = np.array([30 * MS, -1, 50 * MS])


@pytest.mark.parametrize(("name", "sound", "limit", "beyond", "message"), LIMITS)
def test_what_no_machine_can_do(name, sound, limit, beyond, message):
    for value, is_sound in ((sound, True), (limit, True), (beyond, False)):
        columns = tally.columns_of(changed(1, **{name: value}))
        answer = tally.check(columns, n_cpus=2, elapsed_ns=120 * MS, work_ns=WORK_NS)
        assert answer == "ok" if is_sound else answer.startswith(message), value


def test_what_has_not_ended_or_declares_nothing_is_not_held_against_it():
    """Task 3 has not ended, task 2 says nothing of its work."""
    columns = tally.columns_of(changed(2, first_run_ns=20 * MS, run_ns=5 * MS))
    assert tally.check(columns, n_cpus=2, elapsed_ns=120 * MS, work_ns=WORK_NS) == "ok"


@pytest.mark.parametrize(("n_cpus", "elapsed_ms", "late_ms"), [(1, 44, 0), (1, 37, 7), (2, 15, 7)])
def test_all_tasks_have_no_more_than_the_cpus(n_cpus, elapsed_ms, late_ms):
    """44 ms of CPUs, late ends among them, and 1 ms for each of three tasks."""
    for more, is_sound in ((0, True), (1, False)):
        columns = {**tally.columns_of(TASKS), "run_ns": np.array([20 * MS, 27 * MS + more, 0])}
        answer = tally.check(
            columns, n_cpus=n_cpus, elapsed_ns=elapsed_ms * MS, work_ns=np.full(3, -1), late_ns=late_ms * MS
        )
        assert (answer == "ok") == is_sound
    assert answer == f"tasks used {47 * MS + 1} ns of {n_cpus} CPUs in {elapsed_ms * MS} ns"


def length(run_ns, declared, has_calls=(False, False), end_ns=(0, 5)) -> str:
    columns = {"task": np.array([1, 2]), "end_ns": np.array(end_ns), "run_ns": np.array(run_ns)}
    return tally.wrong_length(columns, work_ns=np.array(declared), has_calls=np.array(has_calls))


@pytest.mark.parametrize("sign", [1, -1])
def test_work_is_as_long_as_stated_within_a_tenth(sign):
    # A tenth of 100 ms, and 1 ms for each of the two tasks.
    limit = 12 * MS
    assert length([60 * MS, 40 * MS + sign * limit], [60 * MS, 40 * MS]) == ""
    found = length([60 * MS, 40 * MS + sign * (limit + 1)], [60 * MS, 40 * MS])
    assert (
        f"{100 + sign * 12}.0 ms of CPU time where the workload says 100.0 ms ({sign * 12:+d}.0 %, 10 % are"
        in found
    )


@pytest.mark.parametrize(
    ("declared", "options"),
    [((0, 40 * MS), {}), ((-1, 40 * MS), {}), ((9 * MS, 40 * MS), {"has_calls": (True, False)}),
     ((9 * MS, 40 * MS), {"end_ns": (-1, 5)})],
    ids=["no work", "not known", "calls", "not ended"],
)  # fmt: skip
def test_a_task_that_states_nothing_of_its_length_is_left_out(declared, options):
    assert length([300 * MS, 40 * MS], declared, **options) == ""
