# SPDX-License-Identifier: MIT
"""What others had of the CPUs while the tasks of a recording waited."""

from __future__ import annotations

import json

import pytest

from python.record_files import timeline_of
from schedlab.metrics.disturbance import describe_disturbance, disturbance
from schedlab.records.file import Kind, Overhead, Stop
from schedlab.show.record import show_recorded

MS = 1_000_000
STOLEN = (Kind.OVERHEAD, Overhead.STOLEN)
#: On CPU 0 task 1 runs for 10 ms, waits for 30 of which others have 25, runs for 10, sleeps while
#: others have 20, and ends. On CPU 1, where none of the tasks runs, others have all.
EVENTS = [
    (0, 1, 0, Kind.ARRIVE, 0, 0), (0, 1, 0, Kind.RUN, 0, 0), (10 * MS, 1, 0, Kind.STOP, Stop.PREEMPTED, 10 * MS),
    (35 * MS, 0, 0, *STOLEN, 25 * MS), (40 * MS, 1, 0, Kind.RUN, 0, 0), (50 * MS, 1, 0, Kind.STOP, Stop.BLOCKED, 10 * MS),
    (70 * MS, 0, 0, *STOLEN, 20 * MS), (70 * MS, 1, 0, Kind.WAKE, 0, 0), (70 * MS, 1, 0, Kind.RUN, 0, 0),
    (75 * MS, 1, 0, Kind.STOP, Stop.EXITED, 5 * MS), (75 * MS, 0, 1, *STOLEN, 75 * MS),
]  # fmt: skip


def test_only_what_a_task_waited_for_is_lost():
    found = disturbance(timeline_of(EVENTS, n_cpus=2))
    assert found == {"others_ns": 45 * MS, "lost_ns": 25 * MS, "steal_ns": 0, "share": 0.5}
    found = disturbance(timeline_of(EVENTS, n_cpus=2), steal_ns={0: 5 * MS, 1: 70 * MS})
    assert (found["steal_ns"], found["share"]) == (5 * MS, 0.6)


def test_as_many_cpus_are_lost_as_tasks_wait():
    """Two CPUs are taken for 10 ms, beside one waiting task and then two."""
    events = [
        (0, 1, 0, Kind.ARRIVE, 0, 0), (0, 2, 1, Kind.ARRIVE, 0, 0), (0, 1, 0, Kind.RUN, 0, 0), (0, 2, 1, Kind.RUN, 0, 0),
        (1 * MS, 1, 0, Kind.STOP, Stop.PREEMPTED, 1 * MS), (1 * MS, 2, 1, Kind.STOP, Stop.BLOCKED, 1 * MS),
        (7 * MS, 2, 1, Kind.WAKE, 0, 0), (11 * MS, 0, 0, *STOLEN, 10 * MS), (11 * MS, 0, 1, *STOLEN, 10 * MS),
        (11 * MS, 1, 0, Kind.RUN, 0, 0), (11 * MS, 2, 1, Kind.RUN, 0, 0), (12 * MS, 1, 0, Kind.STOP, Stop.EXITED, 1 * MS),
        (12 * MS, 2, 1, Kind.STOP, Stop.EXITED, 1 * MS),
    ]  # fmt: skip
    found = disturbance(timeline_of(events, n_cpus=2))
    assert (found["others_ns"], found["lost_ns"]) == (20 * MS, 14 * MS)


def test_nothing_is_said_where_others_had_nothing():
    alone = [event for event in EVENTS if event[3] != Kind.OVERHEAD]
    found = disturbance(timeline_of(alone, n_cpus=2))
    assert (
        found == {"others_ns": 0, "lost_ns": 0, "steal_ns": 0, "share": 0.0}
        and describe_disturbance(found) is None
    )
    assert disturbance(timeline_of([], n_cpus=1))["share"] == 0


@pytest.mark.parametrize(("share", "is_compared"), [(0.10, True), (0.11, False)])
def test_a_replay_is_not_compared_with_a_recording_that_others_disturbed(
    tmp_path, capsys, share, is_compared
):
    found = {"others_ns": 1_067 * MS, "lost_ns": 500 * MS, "steal_ns": 0, "share": share}
    run = {
        "host": "linux",
        "policy": "SCHED_OTHER",
        "metrics": {"switches": 3, "turnaround_ns_mean": 298 * MS},
        "recording": {"disturbance": found},
    }
    (tmp_path / "run.json").write_text(json.dumps(run))
    show_recorded(tmp_path)
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "disturbed: other processes had 1067.0 ms of its CPUs, 500.0 ms of it while its tasks waited" in said
    )
    assert ("as recorded" in said) is is_compared
    assert ("not compared" in said) is not is_compared
