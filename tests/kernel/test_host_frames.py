# SPDX-License-Identifier: MIT
"""What the kernel sends is read whole or refused, and becomes a workload's records."""

from __future__ import annotations

import numpy as np
import pytest

from schedlab.errors import HostError
from schedlab.hosts.kernel.frames import (
    END,
    FRAME,
    MAGIC,
    RECORDS,
    TEXT,
    merge_harts,
    played_records,
    read_frames,
    read_overhead,
)
from schedlab.records.file import RECORD_DTYPE, Kind, Overhead, Stop


def frame(kind, body=b"", *, hart=0, seq=0, arg=0):
    return FRAME.pack(MAGIC, kind, hart, len(body), seq, arg) + body


def records(*events):
    return np.array(list(events), RECORD_DTYPE)


def text(line):
    return frame(TEXT, line.encode())


def test_frames_come_apart():
    one = records((5, 7, 0, Kind.RUN, 0, 0))
    sent = read_frames(
        text("task 0 7")
        + frame(RECORDS, one.tobytes())
        + text("task 1 8")
        + frame(RECORDS, one.tobytes(), seq=1)
        + frame(END, arg=3)
    )
    assert sent.said("task") == ["0 7", "1 8"]
    assert [len(part) for part in sent.records] == [2]
    assert (sent.status, sent.n_lost) == (3, 0)


@pytest.mark.parametrize("n_bytes", [0, 1, 23, 24, 27])
def test_a_stream_that_was_cut_off_gives_what_was_whole(n_bytes):
    whole = text("start 1 horizon 0")
    assert read_frames(whole + text("done")[:n_bytes]).lines == ["start 1 horizon 0"]
    assert read_frames(whole[:n_bytes]).status is None


def test_what_is_no_frame_is_refused():
    with pytest.raises(HostError, match="at byte 28: .*different versions"):
        read_frames(text("done") + b"x" * 40)
    with pytest.raises(HostError, match="cannot be read at byte 0"):
        read_frames(FRAME.pack(MAGIC, TEXT, 0, 1 << 30, 0, 0))
    with pytest.raises(HostError, match="cannot be read at byte 0"):
        read_frames(FRAME.pack(MAGIC, 9, 0, 0, 0, 0))


def test_a_chunk_that_is_missing_is_no_gap():
    one = records((5, 7, 0, Kind.RUN, 0, 0)).tobytes()
    with pytest.raises(HostError, match="lost a chunk of hart 1"):
        read_frames(frame(RECORDS, one, hart=1) + frame(RECORDS, one, hart=1, seq=2))
    with pytest.raises(HostError, match="lost a chunk of hart 0"):
        read_frames(frame(RECORDS, one[:-1]))


def test_harts_meet_in_the_order_that_can_be():
    left = records((5, 1, 0, Kind.STOP, Stop.PREEMPTED, 0), (5, 2, 0, Kind.RUN, 0, 0))
    other = records(
        (4, 9, 1, Kind.WAKE, 0, 0), (5, 2, 1, Kind.STOP, Stop.YIELDED, 0), (5, 1, 1, Kind.RUN, 0, 0)
    )
    merged = merge_harts([left, other])
    assert [(int(e["kind"]), int(e["task"])) for e in merged] == [
        (Kind.WAKE, 9), (Kind.STOP, 1), (Kind.STOP, 2), (Kind.RUN, 2), (Kind.RUN, 1),
    ]  # fmt: skip
    # A hart's own order is never changed, whatever its kinds.
    own = records((5, 1, 0, Kind.RUN, 0, 0), (5, 1, 0, Kind.STOP, 0, 0))
    assert merge_harts([own, records((5, 3, 1, Kind.WAKE, 0, 0))])["task"].tolist() == [3, 1, 1]
    assert len(merge_harts([])) == 0


def sent_with(events, *, horizon=0, tasks=2, lost=0):
    words = text(f"start 100 horizon {horizon}")
    for task in range(tasks):
        words += text(f"task {task} {task + 5}")
    return read_frames(words + frame(RECORDS, events.tobytes(), arg=lost) + frame(END))


def test_pids_and_times_become_the_programs():
    events = records(
        (90, 3, 0, Kind.RUN, 0, 0),
        (95, 3, 0, Kind.STOP, Stop.BLOCKED, 5),
        (100, 5, 0, Kind.ARRIVE, 0, 3),
        (100, 5, 0, Kind.RUN, 0, 0),
        (110, 6, 0, Kind.ARRIVE, 0, 3),
        (112, 5, 0, Kind.WAKE, 0, 6),
        (120, 5, 0, Kind.STOP, Stop.EXITED, 20),
        (121, 6, 0, Kind.RUN, 0, 0),
        (130, 6, 0, Kind.STOP, Stop.EXITED, 9),
        (140, 3, 0, Kind.WAKE, 0, 0),
    )
    played = played_records(sent_with(events), np.array([0, 1]))
    assert (played.end_ns, played.n_exited, played.tasks) == (30, 2, {5: 1, 6: 2})
    assert played.events["t_ns"].tolist() == [0, 0, 10, 12, 20, 21, 30]
    assert played.events["task"].tolist() == [1, 1, 2, 1, 1, 2, 2]
    # Task 2 was started by task 1, whoever made its process; its waker is a task, too.
    assert played.events["arg"].tolist()[:4] == [0, 0, 1, 2]


def test_other_processes_are_overhead():
    events = records(
        (100, 5, 0, Kind.ARRIVE, 0, 0),
        (100, 5, 0, Kind.RUN, 0, 0),
        (110, 5, 0, Kind.STOP, Stop.PREEMPTED, 10),
        (111, 3, 0, Kind.RUN, 0, 0),
        (119, 3, 0, Kind.STOP, Stop.BLOCKED, 8),
        (120, 5, 0, Kind.RUN, 0, 0),
        (130, 5, 0, Kind.STOP, Stop.EXITED, 10),
    )
    played = played_records(sent_with(events, tasks=1), np.array([0]))
    (overhead,) = played.events[played.events["kind"] == Kind.OVERHEAD]
    assert (overhead["t_ns"], overhead["arg"], overhead["task"]) == (19, 8, 0)
    assert overhead["flags"] == Overhead.SWITCH


def test_the_horizon_cuts_what_runs():
    events = records(
        (100, 5, 0, Kind.ARRIVE, 0, 0), (100, 5, 0, Kind.RUN, 0, 0), (900, 6, 0, Kind.ARRIVE, 0, 0)
    )
    played = played_records(sent_with(events, horizon=50), np.array([0, 0]))
    assert (played.end_ns, played.n_exited, len(played.events)) == (50, 0, 3)
    last = played.events[-1]
    assert (last["kind"], last["flags"], last["t_ns"], last["arg"]) == (Kind.STOP, Stop.HORIZON, 50, 50)


def test_lost_records_are_not_forgotten():
    events = records(
        (100, 5, 0, Kind.ARRIVE, 0, 0), (100, 5, 0, Kind.RUN, 0, 0), (110, 5, 0, Kind.STOP, Stop.EXITED, 10)
    )
    played = played_records(sent_with(events, tasks=1, lost=4), np.array([0]))
    assert (played.events[-1]["kind"], played.events[-1]["arg"]) == (Kind.LOST, 4)


def test_a_workload_that_never_began_is_an_error():
    with pytest.raises(HostError, match="never started the workload"):
        played_records(read_frames(frame(END)), np.array([0]))


def test_overhead_is_read_by_policy_and_purpose():
    found = read_overhead(["rr user=10/1 sched=90/3", "fifo user=1/1"])
    assert found["rr"]["sched"] == {"instructions": 90, "times": 3}
    assert list(found) == ["rr", "fifo"]
