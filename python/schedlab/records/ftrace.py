# SPDX-License-Identifier: MIT
"""Make records of what a Linux kernel's own tracing saw.

The kernel writes binary events into a ring of pages per CPU. The layout of a
page is fixed; that of an event is what the kernel says in its `format` files,
which travel with the pages. From `sched_switch`, `sched_waking`, `sched_wakeup`
and `sched_migrate_task` follow the same records that every other host writes.

Must stay true: only tasks of the program get records of their own. A kernel
thread that interrupts a task, which then goes on, steals its moment from that
task's turn. What else others use of a CPU is overhead, never idle time.

hosts/linux/record/lives.c makes records of the same events for another purpose: it
follows trees of unknown processes on a machine that is in use, where an interruption
is time stolen and events are missing. Here all tasks and their beginning are known.

Read next: metrics/dictionary.py, which cannot tell whose records it reads.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import RecordError
from .file import RECORD_DTYPE, Kind, Overhead, Stop

#: The page's header: time of its first event, bytes of events, flags in the top bits.
PAGE_HEADER = struct.Struct("<QQ")
PAGE_BYTES_MASK = (1 << 27) - 1
#: Values of an event's five type bits that are not a length.
TYPE_LONG, TYPE_PADDING, TYPE_TIME_EXTEND, TYPE_TIME_STAMP = 0, 29, 30, 31
TIME_BITS = 27
#: Bits of prev_state: exiting states, and "runnable, but preempted in the kernel".
STATE_DEAD, STATE_PREEMPTED = 0x10 | 0x20, 0x100
#: Bits of common_flags: the event came from an interrupt, not from the task.
FLAG_INTERRUPT = 0x08 | 0x10
#: A switch this soon after sched_yield() is its doing; later ones are not.
YIELD_NS_MAX = 200_000

NEW, RUNNABLE, RUNNING, BLOCKED, DEAD = range(5)
#: Linux's own numbers: from here on, priorities are those of nice values; what is below is real-time.
PRIO_NORMAL = 100
#: The event of bpf_printk().
PRINTK = "bpf_trace_printk"
#: Kind of a record that turned out to say nothing.
VOID = 0


@dataclass
class Trace:
    """Raw events of one run."""

    formats: dict[str, str]  #: Text of the kernel's `format` files, by `"sched/sched_switch"` and so on.
    #: Pid in the kernel to pid in the program (index + 1).
    tasks: dict[int, int] = field(default_factory=dict)
    pages: dict[int, list[bytes]] = field(default_factory=dict)  #: Ring pages by CPU, in order.
    start_ns: int = 0  #: Time 0 of the program on the trace's clock, in nanoseconds.
    end_ns: int = 0  #: End of the run, in nanoseconds since time 0.
    #: Whether a process outside the program decides, under the scheduler itself: it interrupts no task, but takes
    #: a turn as every other.
    has_user_half: bool = False
    n_lost: int = 0  #: Events that found the ring full.

    @cached_property
    def events(self) -> list[tuple[int, int, str, dict[str, Any]]]:
        """What `sorted_events` returns: pages are decoded once, whatever is made of them."""
        return sorted_events(self)


@dataclass(frozen=True)
class EventFormat:
    """Where the fields of one kind of event lie."""

    name: str  #: The event's name without its group.
    number: int  #: Its number in the ring.
    fields: dict[str, tuple[int, int, bool]]  #: Offset and size in bytes, and whether it is signed.


def read_format(text: str) -> EventFormat:
    """Read one of the kernel's `format` files."""
    name = re.search(r"^name: (\w+)$", text, re.MULTILINE)
    number = re.search(r"^ID: (\d+)$", text, re.MULTILINE)
    if not name or not number:
        raise RecordError(f"not an event's format file: {text[:60]!r}")
    fields = {}
    pattern = r"field:[^;]*?(\w+)(?:\[[^;]*\])?;\s*offset:(\d+);\s*size:(\d+);\s*signed:(\d);"
    for field_name, offset, size, signed in re.findall(pattern, text):
        fields[field_name] = (int(offset), int(size), signed == "1")
    return EventFormat(name[1], int(number[1]), fields)


def page_events(page: bytes) -> Iterator[tuple[int, bytes]]:
    """Walk the events of one ring page."""
    if len(page) < PAGE_HEADER.size:
        raise RecordError(f"a trace page of {len(page)} bytes has no header")
    time_ns, commit = PAGE_HEADER.unpack_from(page)
    at = PAGE_HEADER.size
    end = at + (commit & PAGE_BYTES_MASK)
    if end > len(page):
        raise RecordError(f"a trace page of {len(page)} bytes claims {end}")
    while at + 4 <= end:
        (head,) = struct.unpack_from("<I", page, at)
        kind, delta_ns = head & 31, head >> 5
        at += 4
        if kind == TYPE_PADDING and delta_ns == 0:
            return
        # Every other kind has a word behind its head, or is all words.
        words = kind or (struct.unpack_from("<I", page, at)[0] + 3) // 4
        if kind in (TYPE_TIME_EXTEND, TYPE_TIME_STAMP):
            (high,) = struct.unpack_from("<I", page, at)
            whole_ns = high << TIME_BITS | delta_ns
            # A stamp lacks the top five bits of the time; the page's start has them.
            time_ns = time_ns + whole_ns if kind == TYPE_TIME_EXTEND else whole_ns | time_ns >> 59 << 59
            at += 4
            continue
        time_ns += delta_ns
        if kind == TYPE_PADDING:
            at += struct.unpack_from("<I", page, at)[0]
            continue
        start, at = (at if kind else at + 4), at + 4 * words
        if at > end:
            raise RecordError(f"a trace event leaves its page, at byte {start}")
        yield time_ns, page[start:at]


@dataclass
class _Task:
    """What is known of one task of the program while its events are read."""

    number: int
    state: int = NEW
    since_ns: int = 0
    yielded_ns: int = -YIELD_NS_MAX - 1


class _Converter:
    """Turns events, in order of time, into records."""

    def __init__(self, trace: Trace):
        self.start_ns = trace.start_ns
        self.has_user_half = trace.has_user_half
        self.tasks = {pid: _Task(number) for pid, number in trace.tasks.items()}
        self.records: list[list[int]] = []
        #: By CPU: the task that an outsider has taken it from, since when it ran, and
        #: the records that say so: its stop, which is void if it just goes on, and overhead.
        self.interrupted: dict[int, tuple[_Task, int, list[Any]]] = {}
        #: Who is on each CPU, since when, and whether it took that in real time: for processes outside the program.
        self.outsiders: dict[int, tuple[int, int, bool]] = {}

    def add(self, t_ns: int, task: int, cpu: int, kind: int, flags: int = 0, arg: int = 0) -> list[int]:
        """Append one record; it may be changed later."""
        self.records.append([t_ns, task, cpu, kind, flags, arg])
        return self.records[-1]

    def waking(self, t_ns: int, cpu: int, event: dict[str, Any]) -> None:
        """A task becomes runnable; on which CPU, `wakeup` tells."""
        task = self.tasks.get(event["pid"])
        if task is None or task.state not in (NEW, BLOCKED):
            return
        waker = self.tasks.get(event["common_pid"])
        by = waker.number if waker and not event["common_flags"] & FLAG_INTERRUPT else 0
        kind = Kind.ARRIVE if task.state == NEW else Kind.WAKE
        task.state = RUNNABLE
        self.add(t_ns, task.number, cpu, kind, 0, by)

    def wakeup(self, t_ns: int, cpu: int, event: dict[str, Any]) -> None:
        """The choice of a CPU for what `waking` announced."""
        self.waking(t_ns, cpu, event)
        task = self.tasks.get(event["pid"])
        for record in reversed(self.records[-64:]):
            if task and record[1] == task.number and record[3] in (Kind.ARRIVE, Kind.WAKE):
                record[2] = event["target_cpu"]
                return

    def sys_enter(self, t_ns: int, _cpu: int, event: dict[str, Any]) -> None:
        """Of all system calls only sched_yield() is traced."""
        task = self.tasks.get(event["common_pid"])
        if task is not None:
            task.yielded_ns = t_ns

    def migrate(self, t_ns: int, _cpu: int, event: dict[str, Any]) -> None:
        """A task goes to the queue of another CPU."""
        task = self.tasks.get(event["pid"])
        if task is not None and task.state != NEW:
            self.add(t_ns, task.number, event["dest_cpu"], Kind.MIGRATE, 0, event["orig_cpu"])

    def switch(self, t_ns: int, cpu: int, event: dict[str, Any]) -> None:
        """One process leaves the CPU and another gets it."""
        pid = event["next_pid"]
        task = self.tasks.get(pid)
        is_turn = bool(task is None and pid and self.has_user_half and event["next_prio"] >= PRIO_NORMAL)
        self._leave(
            t_ns, cpu, event["prev_pid"], event["prev_state"], to_outsider=task is None and not is_turn
        )
        if is_turn:
            # Who is interrupted now is not interrupted by what was there before.
            self.interrupted.pop(cpu, None)
        if task is None:
            # A higher class has taken the CPU from a task, whether that goes on or not.
            is_theft = event["next_prio"] < PRIO_NORMAL and cpu in self.interrupted
            self.outsiders[cpu] = (pid, t_ns, is_theft)
            return
        was, since_ns, void = self.interrupted.pop(cpu, (None, 0, []))
        if was is task:
            # It goes on where it was: its turn is longer by what was stolen from it. A
            # moment in which the CPU was about to be idle is the task's.
            stop, *stolen = void
            stop[3] = VOID
            for record in stolen:
                record[4] = Overhead.STOLEN
            task.state, task.since_ns = RUNNING, since_ns + sum(record[5] for record in stolen)
            return
        for other, (waiting, _, _) in list(self.interrupted.items()):
            if waiting is task:
                del self.interrupted[other]
        if task.state in (NEW, BLOCKED):
            # Its wake-up was before the trace began, or was lost.
            self.waking(t_ns, cpu, {"pid": pid, "common_pid": 0, "common_flags": 0})
        task.state, task.since_ns = RUNNING, t_ns
        self.add(t_ns, task.number, cpu, Kind.RUN)

    def _leave(self, t_ns: int, cpu: int, pid: int, state: int, *, to_outsider: bool) -> None:
        task = self.tasks.get(pid)
        if task is None:
            outsider, since_ns, is_theft = self.outsiders.pop(cpu, (0, 0, False))
            if outsider and outsider == pid:
                used_ns = t_ns - max(since_ns, 0)
                cause = Overhead.STOLEN if is_theft else Overhead.SWITCH
                overhead = self.add(t_ns, 0, cpu, Kind.OVERHEAD, cause, used_ns)
                if cpu in self.interrupted:
                    self.interrupted[cpu][2].append(overhead)
            return
        if task.state != RUNNING:
            return
        if state & STATE_DEAD:
            why, task.state = Stop.EXITED, DEAD
        elif state & (STATE_PREEMPTED - 1):
            why, task.state = Stop.BLOCKED, BLOCKED
        else:
            is_yield = t_ns - task.yielded_ns < YIELD_NS_MAX
            why, task.state = Stop.YIELDED if is_yield else Stop.PREEMPTED, RUNNABLE
        stop = self.add(t_ns, task.number, cpu, Kind.STOP, why, t_ns - task.since_ns)
        if to_outsider and why == Stop.PREEMPTED:
            self.interrupted[cpu] = (task, task.since_ns, [stop])

    def end(self, end_ns: int) -> int:
        """End the run: with its last task, or while some are on their CPUs."""
        if self.records and all(task.state == DEAD for task in self.tasks.values()):
            return max(record[0] for record in self.records if record[3] == Kind.STOP)
        where = {record[1]: record[2] for record in self.records if record[3] == Kind.RUN}
        for task in self.tasks.values():
            if task.state == RUNNING:
                self.add(
                    end_ns, task.number, where[task.number], Kind.STOP, Stop.HORIZON, end_ns - task.since_ns
                )
        return end_ns


_HANDLERS = {
    "sched_switch": _Converter.switch,
    "sched_waking": _Converter.waking,
    "sched_wakeup": _Converter.wakeup,
    "sched_wakeup_new": _Converter.wakeup,
    "sched_migrate_task": _Converter.migrate,
    "sys_enter": _Converter.sys_enter,
}


def trace_records(trace: Trace) -> tuple[np.ndarray, int]:
    """Convert a trace into records.

    The arrival of a task is when its timer, or its parent, wakes it. DSQs are
    not known: `arg` of a RUN is 0.
    """
    converter = _Converter(trace)
    for t_ns, cpu, name, event in trace.events:
        if name == PRINTK:
            continue
        t_ns -= trace.start_ns
        if t_ns > trace.end_ns:
            break
        # Only who is on the CPU matters before time 0.
        if t_ns >= 0 or name == "sched_switch":
            _HANDLERS[name](converter, t_ns, cpu, event)
    end_ns = converter.end(trace.end_ns)
    records = [
        tuple(record) for record in converter.records if 0 <= record[0] <= end_ns and record[3] != VOID
    ]
    if trace.n_lost:
        records.append((end_ns, 0, 0, Kind.LOST, 0, trace.n_lost))
    return np.array(records, RECORD_DTYPE), end_ns


def printed_lines(trace: Trace) -> list[str]:
    """What policies printed by `bpf_printk()` while the run was recorded."""
    # Of a kernel without that event nothing is printed, and nothing need be decoded.
    if not any(path.rpartition("/")[2] == PRINTK for path in trace.formats):
        return []
    return [
        event["bpf_string"] for _, _, name, event in trace.events if name == PRINTK and "bpf_string" in event
    ]


def sorted_events(trace: Trace) -> list[tuple[int, int, str, dict[str, Any]]]:
    """All events that make records, of all CPUs, in order of time."""
    by_number = {}
    for path, text in trace.formats.items():
        if path.rpartition("/")[2] in (*_HANDLERS, PRINTK):
            form = read_format(text)
            readers = {
                name: (offset, struct.Struct(f"<{_CODES[size].lower() if signed else _CODES[size]}"))
                for name, (offset, size, signed) in form.fields.items()
                if size in _CODES
            }
            by_number[form.number] = (form.name, readers)
    if not by_number:
        raise RecordError("the trace has no format files, so its events cannot be read")
    events = []
    for cpu, pages in trace.pages.items():
        for page in pages:
            for t_ns, raw in page_events(page):
                known = by_number.get(int.from_bytes(raw[:2], "little"))
                if known is not None:
                    name, readers = known
                    values = {
                        key: reader.unpack_from(raw, offset)[0] for key, (offset, reader) in readers.items()
                    }
                    if name == PRINTK and "bpf_string" in values:
                        # A field of variable length: where it lies, and how long it is.
                        start, length = values["bpf_string"] & 0xFFFF, values["bpf_string"] >> 16 & 0xFFFF
                        values = {
                            "bpf_string": raw[start : start + length]
                            .rstrip(b"\0\n")
                            .decode("utf-8", "replace")
                        }
                    events.append((t_ns, cpu, name, values))
    events.sort(key=lambda event: event[:2])
    return events


_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
