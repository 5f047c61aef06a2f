# SPDX-License-Identifier: MIT
"""Traces written by hand: pages byte by byte, schedules event by event."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.errors import RecordError
from schedlab.records import ftrace
from schedlab.records.file import Kind, Overhead, Stop
from schedlab.records.ftrace import (
    Trace,
    page_events,
    printed_lines,
    read_format,
    sorted_events,
    trace_records,
)

COMMON = [
    ("unsigned short common_type", 0, 2, 0),
    ("unsigned char common_flags", 2, 1, 0),
    ("unsigned char common_preempt_count", 3, 1, 0),
    ("int common_pid", 4, 4, 1),
]
EVENTS = {
    "sched/sched_switch": (
        316,
        [
            ("char prev_comm[16]", 8, 16, 0),
            ("pid_t prev_pid", 24, 4, 1),
            ("int prev_prio", 28, 4, 1),
            ("long prev_state", 32, 8, 1),
            ("char next_comm[16]", 40, 16, 0),
            ("pid_t next_pid", 56, 4, 1),
            ("int next_prio", 60, 4, 1),
        ],
    ),
    "sched/sched_waking": (317, [("pid_t pid", 8, 4, 1), ("int target_cpu", 12, 4, 1)]),
    "sched/sched_wakeup": (318, [("pid_t pid", 8, 4, 1), ("int target_cpu", 12, 4, 1)]),
    "sched/sched_migrate_task": (
        319,
        [("pid_t pid", 8, 4, 1), ("int orig_cpu", 12, 4, 1), ("int dest_cpu", 16, 4, 1)],
    ),
    "raw_syscalls/sys_enter": (20, [("long id", 8, 8, 1)]),
    "bpf_trace/bpf_trace_printk": (400, [("__data_loc char[] bpf_string", 8, 4, 0)]),
}


def format_text(name):
    number, fields = EVENTS[name]
    lines = [f"name: {name.rpartition('/')[2]}", f"ID: {number}", "format:"]
    for text, offset, size, signed in COMMON + fields:
        lines.append(f"\tfield:{text};\toffset:{offset};\tsize:{size};\tsigned:{signed};")
    return "\n".join(lines) + '\n\nprint fmt: "x"\n'


FORMATS = {name: format_text(name) for name in EVENTS}


def event(name, *, common_pid=0, flags=0, **values):
    """Bytes of one event; fields that are not given are 0."""
    number, fields = EVENTS[name]
    size = max(offset + size for _, offset, size, _ in fields)
    data = bytearray(size)
    struct.pack_into("<HBBi", data, 0, number, flags, 0, common_pid)
    for text, offset, width, _ in fields:
        key = text.split()[-1].partition("[")[0]
        if key in values:
            data[offset : offset + width] = int(values[key]).to_bytes(width, "little", signed=True)
    return bytes(data)


def page(events, *, start_ns=0):
    """A ring page; `events` are (time, bytes) in order of time."""
    data, now_ns = b"", start_ns
    for t_ns, raw in events:
        delta_ns, now_ns = t_ns - now_ns, t_ns
        if delta_ns >= 1 << 27:
            data += struct.pack("<II", 30 | delta_ns % (1 << 27) << 5, delta_ns >> 27)
            delta_ns = 0
        raw += bytes(-len(raw) % 4)
        words = len(raw) // 4
        if words <= 28:
            data += struct.pack("<I", words | delta_ns << 5) + raw
        else:
            data += struct.pack("<II", delta_ns << 5, len(raw) + 4) + raw
    return struct.pack("<QQ", start_ns, len(data)) + data + bytes(64)


def printed(t_ns, text):
    """What bpf_printk() leaves: a place and a length, then the text itself."""
    said = text.encode() + b"\0"
    return (t_ns, event("bpf_trace/bpf_trace_printk", bpf_string=12 | len(said) << 16) + said)


def switch(t_ns, prev, next_, state=0, *, prio=120):
    values = {"prev_pid": prev, "next_pid": next_, "prev_state": state, "next_prio": prio}
    return (t_ns, event("sched/sched_switch", **values))


def wake(t_ns, pid, cpu=0, by=0, flags=0):
    waking = event("sched/sched_waking", common_pid=by, flags=flags, pid=pid, target_cpu=0)
    return [(t_ns, waking), (t_ns + 1, event("sched/sched_wakeup", pid=pid, target_cpu=cpu))]


def records_of(*events, cpus=None, end_ns=1000, lost=0, has_user_half=False):
    """Records as (time, task, cpu, kind, flags, arg); pids 101, 102 are tasks 1, 2."""
    pages = (
        {0: [page(list(events))]}
        if cpus is None
        else {cpu: [page(list(of_cpu))] for cpu, of_cpu in cpus.items()}
    )
    trace = Trace(FORMATS, {101: 1, 102: 2}, pages, end_ns=end_ns, n_lost=lost, has_user_half=has_user_half)
    found, end = trace_records(trace)
    return [tuple(int(value) for value in record) for record in found], end


def test_bad_pages_and_formats_are_refused():
    with pytest.raises(RecordError, match="has no header"):
        list(page_events(b"short"))
    with pytest.raises(RecordError, match="claims 4016"):
        list(page_events(struct.pack("<QQ", 0, 4000)))
    with pytest.raises(RecordError, match="leaves its page"):
        list(page_events(struct.pack("<QQ", 0, 8) + struct.pack("<II", 5, 0)))
    with pytest.raises(RecordError, match="not an event's format file"):
        read_format("nonsense")
    with pytest.raises(RecordError, match="no format files"):
        sorted_events(Trace({}, pages={0: []}))


def test_a_format_file_is_read():
    form = read_format(FORMATS["sched/sched_switch"])
    assert (form.name, form.number) == ("sched_switch", 316)
    assert form.fields["prev_state"] == (32, 8, True)
    assert form.fields["next_comm"] == (40, 16, False)


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.binary(min_size=4, max_size=300)), max_size=40))
def test_pages_of_any_events_and_gaps_are_walked(events):
    events = [(t, b"\1\1" + raw) for t, raw in sorted(events, key=lambda item: item[0])]
    walked = list(page_events(page(events)))
    assert [t for t, _ in walked] == [t for t, _ in events]
    assert all(
        got.startswith(raw) and len(got) - len(raw) < 4
        for (_, got), (_, raw) in zip(walked, events, strict=True)
    )


def test_one_task_arrives_runs_blocks_wakes_and_exits():
    found, end_ns = records_of(
        *wake(10, 101),
        switch(20, 0, 101),
        switch(50, 101, 0, state=1),
        *wake(70, 101, flags=8, by=0),
        switch(80, 0, 101),
        switch(95, 101, 0, state=0x10),
    )
    assert found == [
        (10, 1, 0, Kind.ARRIVE, 0, 0),
        (20, 1, 0, Kind.RUN, 0, 0),
        (50, 1, 0, Kind.STOP, Stop.BLOCKED, 30),
        (70, 1, 0, Kind.WAKE, 0, 0),
        (80, 1, 0, Kind.RUN, 0, 0),
        (95, 1, 0, Kind.STOP, Stop.EXITED, 15),
    ]
    # Task 2 never came, so the run is not over before its end.
    assert end_ns == 1000


def test_the_waker_is_named_unless_an_interrupt_woke():
    found, _ = records_of(*wake(10, 101), switch(11, 0, 101), *wake(20, 102, by=101), end_ns=30)
    assert (20, 2, 0, Kind.ARRIVE, 0, 1) in found
    found, _ = records_of(*wake(10, 101), switch(11, 0, 101), *wake(20, 102, by=101, flags=8), end_ns=30)
    assert (20, 2, 0, Kind.ARRIVE, 0, 0) in found


def test_a_kernel_thread_that_interrupts_steals_from_the_task():
    found, _ = records_of(
        *wake(0, 101),
        switch(10, 0, 101),
        switch(20, 101, 15),
        switch(25, 15, 101),
        switch(40, 101, 0, state=1),
        end_ns=50,
    )
    assert found[1:] == [
        (10, 1, 0, Kind.RUN, 0, 0),
        (25, 0, 0, Kind.OVERHEAD, Overhead.STOLEN, 5),
        (40, 1, 0, Kind.STOP, Stop.BLOCKED, 25),
    ]


@pytest.mark.parametrize(("prio", "why"), [(98, Overhead.STOLEN), (120, Overhead.SWITCH)])
def test_a_real_time_thread_steals_from_a_task_that_does_not_go_on(prio, why):
    """Another one does, as where the slice was used up; what is no real-time task the policy has chosen."""
    found, _ = records_of(
        *wake(0, 101),
        *wake(2, 102),
        switch(10, 0, 101),
        switch(20, 101, 15, prio=prio),
        switch(25, 15, 102),
        switch(40, 102, 0, state=1),
        end_ns=50,
    )
    assert found[2:] == [
        (10, 1, 0, Kind.RUN, 0, 0),
        (20, 1, 0, Kind.STOP, Stop.PREEMPTED, 10),
        (25, 0, 0, Kind.OVERHEAD, why, 5),
        (25, 2, 0, Kind.RUN, 0, 0),
        (40, 2, 0, Kind.STOP, Stop.BLOCKED, 15),
    ]


def test_a_real_time_thread_steals_also_where_the_task_goes_on_elsewhere():
    found, _ = records_of(
        cpus={
            0: [*wake(0, 101), switch(10, 0, 101), switch(20, 101, 15, prio=98), switch(25, 15, 0)],
            1: [switch(22, 0, 101)],
        },
        end_ns=50,
    )
    assert (25, 0, 0, Kind.OVERHEAD, Overhead.STOLEN, 5) in found


def test_under_a_program_of_its_own_a_turn_of_that_is_a_turn():
    """Its priority is a task's; a kernel thread's is above, and still steals."""
    turns = [
        (10, 1, 0, Kind.RUN, 0, 0),
        (20, 1, 0, Kind.STOP, Stop.PREEMPTED, 10),
        (25, 0, 0, Kind.OVERHEAD, Overhead.SWITCH, 5),
        (25, 1, 0, Kind.RUN, 0, 0),
        (40, 1, 0, Kind.STOP, Stop.BLOCKED, 15),
    ]
    stolen = [
        turns[0],
        (25, 0, 0, Kind.OVERHEAD, Overhead.STOLEN, 5),
        (40, 1, 0, Kind.STOP, Stop.BLOCKED, 25),
    ]
    idle = [turns[0], (40, 1, 0, Kind.STOP, Stop.BLOCKED, 30)]
    for pid, prio, expected in ((15, 120, turns), (15, 98, stolen), (0, 120, idle)):
        found, _ = records_of(
            *wake(0, 101),
            switch(10, 0, 101),
            switch(20, 101, pid, prio=prio),
            switch(25, pid, 101),
            switch(40, 101, 0, state=1),
            end_ns=50,
            has_user_half=True,
        )
        assert found[1:] == expected


def test_a_task_that_goes_on_by_way_of_idle_has_run_all_the_time():
    found, _ = records_of(
        *wake(0, 101),
        switch(10, 0, 101),
        switch(20, 101, 0),
        switch(24, 0, 101),
        switch(40, 101, 0, state=1),
        end_ns=50,
    )
    assert found[1:] == [(10, 1, 0, Kind.RUN, 0, 0), (40, 1, 0, Kind.STOP, Stop.BLOCKED, 30)]


def test_a_kernel_thread_between_two_tasks_is_overhead():
    found, _ = records_of(
        *wake(0, 101),
        *wake(3, 102),
        switch(10, 0, 101),
        switch(20, 101, 15),
        switch(25, 15, 102),
        switch(40, 102, 0, state=1),
        end_ns=50,
    )
    assert found[2:] == [
        (10, 1, 0, Kind.RUN, 0, 0),
        (20, 1, 0, Kind.STOP, Stop.PREEMPTED, 10),
        (25, 0, 0, Kind.OVERHEAD, Overhead.SWITCH, 5),
        (25, 2, 0, Kind.RUN, 0, 0),
        (40, 2, 0, Kind.STOP, Stop.BLOCKED, 15),
    ]


def test_an_interrupted_task_that_goes_on_elsewhere_has_stopped():
    found, _ = records_of(
        cpus={
            0: [
                *wake(0, 101),
                switch(10, 0, 101),
                switch(20, 101, 15),
                switch(60, 15, 0),
                switch(70, 0, 101),
            ],
            1: [switch(30, 0, 101), switch(50, 101, 0)],
        },
        end_ns=90,
    )
    assert [record for record in found if record[3] in (Kind.RUN, Kind.STOP)] == [
        (10, 1, 0, Kind.RUN, 0, 0),
        (20, 1, 0, Kind.STOP, Stop.PREEMPTED, 10),
        (30, 1, 1, Kind.RUN, 0, 0),
        (50, 1, 1, Kind.STOP, Stop.PREEMPTED, 20),
        (70, 1, 0, Kind.RUN, 0, 0),
        (90, 1, 0, Kind.STOP, Stop.HORIZON, 20),
    ]


def test_a_yield_is_told_from_a_preemption():
    by_yield = (28, event("raw_syscalls/sys_enter", common_pid=101, id=24))
    found, _ = records_of(
        *wake(0, 101), *wake(3, 102), switch(10, 0, 101), by_yield, switch(30, 101, 102), end_ns=40
    )
    assert (30, 1, 0, Kind.STOP, Stop.YIELDED, 20) in found


def test_the_wake_goes_to_the_cpu_that_was_chosen_and_moves_are_seen():
    move = (12, event("sched/sched_migrate_task", pid=101, orig_cpu=0, dest_cpu=1))
    found, _ = records_of(*wake(5, 101, cpu=1), move, end_ns=20)
    assert found == [(5, 1, 1, Kind.ARRIVE, 0, 0), (12, 1, 1, Kind.MIGRATE, 0, 0)]


def test_the_run_ends_with_its_last_task_and_losses_are_said():
    ends = (
        *wake(0, 101),
        *wake(3, 102),
        switch(10, 0, 101),
        switch(20, 101, 102, state=0x10),
        switch(30, 102, 0, state=0x20),
    )
    found, end_ns = records_of(*ends, switch(40, 0, 15), switch(44, 15, 0), lost=7)
    assert end_ns == 30
    assert found[-1] == (30, 0, 0, Kind.LOST, 0, 7)


def test_what_was_before_time_zero_is_left_out():
    trace = Trace(
        FORMATS,
        tasks={101: 1},
        start_ns=100,
        end_ns=50,
        pages={0: [page([switch(20, 0, 15), *wake(130, 101), switch(140, 15, 101)])]},
    )
    found, _ = trace_records(trace)
    assert found["t_ns"].tolist() == [30, 40, 40, 50]
    assert found["kind"].tolist() == [Kind.ARRIVE, Kind.OVERHEAD, Kind.RUN, Kind.STOP]


def test_lines_of_a_policy_come_in_order_of_time_from_all_cpus():
    pages = {0: [page([printed(50, "second"), switch(60, 0, 101)])], 1: [page([printed(20, "first: ü")])]}
    assert printed_lines(Trace(formats=FORMATS, pages=pages)) == ["first: ü", "second"]


def test_a_kernel_without_that_event_prints_nothing():
    assert printed_lines(Trace(formats={}, pages={0: [page([printed(50, "x")])]})) == []


def test_each_page_is_decoded_once_for_records_and_lines(monkeypatch):
    decoded = []
    monkeypatch.setattr(ftrace, "page_events", lambda raw: decoded.append(raw) or page_events(raw))
    pages = {0: [page([printed(50, "said"), *wake(60, 101)])], 1: [page([switch(60, 0, 15)])]}
    trace = Trace(FORMATS, tasks={101: 1}, pages=pages, end_ns=100)
    found, _ = trace_records(trace)
    assert printed_lines(trace) == ["said"]
    assert found["kind"].tolist() == [Kind.ARRIVE]
    assert len(decoded) == 2
