# SPDX-License-Identifier: MIT
"""What is exported can be read back, and says what the records say."""

from __future__ import annotations

import re
import sys

import pytest

from python.record_files import timeline_of
from schedlab.errors import UsageError
from schedlab.plots.perfetto import message
from schedlab.plots.switches import Note, Switch, Wakeup, linux_events
from schedlab.plots.trace import task_names, write_trace
from schedlab.records.file import Kind, Stop

# Two CPUs; a hand-over at 10, an idle gap on CPU 0 from 20 to 30, a note at 25.
EVENTS = [
    (0, 1, 0, Kind.ARRIVE, 0, 0),
    (0, 1, 0, Kind.RUN, 0, 0),
    (5, 2, 0, Kind.ARRIVE, 0, 1),
    (6, 3, 1, Kind.ARRIVE, 0, 1),
    (6, 3, 1, Kind.RUN, 0, 0),
    (10, 1, 0, Kind.STOP, Stop.PREEMPTED, 10),
    (10, 2, 0, Kind.RUN, 0, 0),
    (20, 2, 0, Kind.STOP, Stop.BLOCKED, 10),
    (20, 3, 1, Kind.STOP, Stop.EXITED, 14),
    (20, 1, 1, Kind.RUN, 0, 0),
    (25, 1, 1, Kind.NOTE, 0, (7 << 32) | 9),
    (30, 2, 0, Kind.WAKE, 0, 1),
    (30, 2, 0, Kind.RUN, 0, 0),
    (40, 2, 0, Kind.STOP, Stop.EXITED, 10),
    (40, 1, 1, Kind.STOP, Stop.HORIZON, 20),
]
NAMES = {1: "a name that is too long", 2: "two"}


@pytest.fixture
def records():
    return timeline_of(EVENTS, n_cpus=2, end_ns=40).records


def test_unknown_format_is_refused(records, tmp_path):
    with pytest.raises(UsageError, match="did you mean 'ftrace'"):
        write_trace(records, tmp_path / "x", names={}, form="ftrase")


def test_switches_worked_out_by_hand(records):
    events = list(linux_events(records))
    switches = [(e.t_ns, e.cpu, e.prev, e.next, e.stop) for e in events if isinstance(e, Switch)]
    assert sorted(switches, key=lambda s: s[:2]) == [
        (0, 0, 0, 1, None),
        (6, 1, 0, 3, None),
        (10, 0, 1, 2, Stop.PREEMPTED),
        (20, 0, 2, 0, Stop.BLOCKED),
        (20, 1, 3, 1, Stop.EXITED),
        (30, 0, 0, 2, None),
        (40, 0, 2, 0, Stop.EXITED),
        (40, 1, 1, 0, Stop.HORIZON),
    ]
    assert [e.t_ns for e in events] == sorted(e.t_ns for e in events)
    assert [(e.pid, e.waker, e.is_new) for e in events if isinstance(e, Wakeup)] == [
        (1, 0, True),
        (2, 1, True),
        (3, 1, True),
        (2, 1, False),
    ]
    assert [(e.key, e.value) for e in events if isinstance(e, Note)] == [(7, 9)]


def test_names_are_what_linux_allows():
    assert task_names(NAMES, 1) == "a_name_that_is_"
    assert task_names(NAMES, 9) == "task-9"
    assert task_names(NAMES, 0, 3) == "swapper/3"


def running_time(switches):
    """Time on a CPU per pid, from (t_ns, cpu, prev, next)."""
    since, total = {}, {}
    for t_ns, cpu, prev, following in switches:
        if prev:
            total[prev] = total.get(prev, 0) + t_ns - since.pop(cpu)
        if following:
            since[cpu] = t_ns
    assert not since
    return total


def test_ftrace_text_can_be_read_back(records, tmp_path):
    write_trace(records, tmp_path / "t.txt", names=NAMES, form="ftrace")
    text = (tmp_path / "t.txt").read_text()
    pattern = re.compile(
        r"-\d+ +\[(\d+)\] \S+ (\d+)\.(\d{9}): sched_switch: .*prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+)"
    )
    found = [
        (int(s) * 10**9 + int(ns), int(cpu), int(p), int(n)) for cpu, s, ns, p, _, n in pattern.findall(text)
    ]
    assert running_time(found) == {1: 30, 2: 20, 3: 14}
    assert "comm=two pid=2 prio=120 target_cpu=000" in text
    assert "schedlab-note 7 9" in text


def test_perfetto_can_be_read_back(records, tmp_path):
    pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    size = write_trace(records, tmp_path / "t.pftrace", names=NAMES)
    raw = (tmp_path / "t.pftrace").read_bytes()
    assert len(raw) == size
    trace = pb2.Trace.FromString(raw)
    switches, counts, names, runnable = [], [], {}, []
    for packet in trace.packet:
        for event in packet.ftrace_events.event:
            if event.HasField("sched_switch"):
                switch = event.sched_switch
                switches.append((event.timestamp, packet.ftrace_events.cpu, switch.prev_pid, switch.next_pid))
                names[switch.next_pid] = switch.next_comm
            if event.HasField("sched_waking"):
                runnable.append((event.timestamp, event.sched_waking.pid))
        if packet.track_event.type == pb2.TrackEvent.TYPE_COUNTER:
            counts.append((packet.timestamp, packet.track_event.counter_value))
    assert running_time(sorted(switches)) == {1: 30, 2: 20, 3: 14}
    assert min(count for _, count in counts) >= 0
    # Only task 1, cut off at the end of the run, still wants a CPU.
    assert counts[-1] == (40, 1)
    del names[0]
    assert names == {1: "a_name_that_is_", 2: "two", 3: "task-3"}
    # Arrivals too: there Perfetto begins the first wait.
    assert sorted(runnable) == [(0, 1), (5, 2), (6, 3), (30, 2)]
    # Who reads the states must know whose they are.
    assert [p.system_info.utsname.release for p in trace.packet if p.HasField("system_info")] == ["7.2.0"]


def test_perfetto_needs_no_python_package(records, tmp_path, monkeypatch):
    """README sends a reader of a default installation to `schedlab trace`."""
    monkeypatch.setitem(sys.modules, "perfetto", None)
    assert write_trace(records, tmp_path / "t.pftrace", names=NAMES)


def test_large_numbers_are_encoded_as_protobuf_has_them():
    pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    for value in (0, 127, 128, 2**35, 2**64 - 1):
        assert message({1: value, 2: 7}) == pb2.FtraceEvent(timestamp=value, pid=7).SerializeToString()


def test_csv_has_a_line_per_record(records, tmp_path):
    write_trace(records, tmp_path / "t.csv", names=NAMES, form="csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines[0] == "t_ns,kind,task,name,cpu,flags,arg"
    assert len(lines) == 1 + len(EVENTS)
    assert lines[6] == "10,STOP,1,a_name_that_is_,0,0,10"
