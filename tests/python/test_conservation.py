# SPDX-License-Identifier: MIT
"""CPU time of tasks against the clock of the threads that they ran on."""

from __future__ import annotations

import numpy as np
import pytest

from python.record_files import timeline_of
from schedlab.hosts.host import Outcome
from schedlab.metrics.conservation import check_clock, check_replay, replayed_part, taken_from
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, Stop, write_records
from schedlab.runs.judge import Judge
from schedlab.workload.spec import parse_workload

MS = 1_000_000
CLOCK = {"clock_ns": 1_000 * MS, "idle_clock_ns": 100 * MS, "switch_clock_ns": 50 * MS, "taken_ns": 0}
#: CPU time that is told, and whether the clock allows it.
TOLD_MS = [(4.9, False), (740, False), (850, True), (1_000, True), (1_060, False)]


def events(ran_ms):
    """One task that has been given so much of a second and a half."""
    ran_ns = int(ran_ms * MS)
    return [(0, 1, 0, Kind.ARRIVE, 0, 0), (0, 1, 0, Kind.RUN, 0, 0), (1_500 * MS, 0, 0, Kind.OVERHEAD, 1, 1_500 * MS - ran_ns),
            (1_500 * MS, 1, 0, Kind.STOP, Stop.EXITED, ran_ns)]  # fmt: skip


@pytest.mark.parametrize(("ran_ms", "is_possible"), TOLD_MS)
def test_the_tasks_have_what_the_kernel_counted(ran_ms, is_possible):
    said = check_clock(timeline_of(events(ran_ms), n_cpus=1), CLOCK)
    assert (said == "ok") is is_possible
    if not is_possible:
        assert (
            f"{int(ran_ms * MS)} ns of CPU time" in said and f"{1_000 * MS} ns by the kernel's clock" in said
        )


def judged(tmp_path, ran_ms, clock):
    """Verdict on such a run."""
    text = '[workload]\ntitle = "a"\nquestion = "b"\njitter = "0ms"\n[[task]]\nname = "x"\nphases = [{work = {kernel = "pi", count = 9}}]\n'
    write_records(tmp_path / "r", events(ran_ms), n_cpus=1)
    judge = Judge(
        latency_ns=0, work_conserving=False, tables_folder=None, has_exact_work=False, calibration=None
    )
    return judge.verdict(compile_workload(parse_workload(text), seed=1), tmp_path / "r", Outcome(clock=clock))


def test_numbers_that_the_clock_contradicts_are_withheld(tmp_path):
    assert judged(tmp_path, 1_000, CLOCK)["metrics"]
    wrong = judged(tmp_path, 4.9, CLOCK)
    assert (wrong["error_kind"], wrong["metrics"]) == ("consistency", {}) and "kernel's clock" in wrong[
        "error"
    ]


def test_a_run_in_which_others_had_most_of_the_time_is_void(tmp_path):
    assert taken_from(CLOCK | {"taken_ns": 1_000 * MS}) is None
    void = judged(tmp_path, 1_000, CLOCK | {"taken_ns": 1_001 * MS})
    assert (void["error_kind"], void["consistency"], void["metrics"]) == ("void", "ok", {})
    assert void["error"].startswith(
        "void: other processes had 1001.0 ms of the CPUs of this run, which had 1000.0 ms itself"
    )


@pytest.mark.parametrize(("replayed_ns", "n_short"), [(94, 0), (93, 1)])
def test_a_shortfall_of_a_twentieth_and_a_nanosecond_is_none(replayed_ns, n_short):
    part = replayed_part(timeline_of(events(replayed_ns / MS)), np.array([100]), np.array(["a"]))
    assert part["tasks_short"] == n_short


def test_a_replay_counts_recorded_time_only():
    part = replayed_part(
        timeline_of(events(7), n_cpus=1), np.array([7 * MS + 1, 3 * MS, 1]), np.array(["a", "b", "c"])
    )
    assert part == {"recorded_ns": 10 * MS + 1, "replayed_ns": 7 * MS, "tasks": 2, "tasks_started": 1, "tasks_short": 1,
                    "short": ["b"]}  # fmt: skip
    assert "1 of 2 tasks never start" in check_replay(part)
