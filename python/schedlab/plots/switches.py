# SPDX-License-Identifier: MIT
"""A run as Linux's tracing would tell it: switches, wake-ups, migrations.

Records say what happened to a task; Linux's `sched_switch` says who followed whom
on a CPU. This module turns the one into the other, for the exports that other
tools read: ftrace text and Perfetto.

Must stay true: every RUN and STOP is in exactly one switch; nothing is invented
but the idle task between two of them.
Read next: trace.py, which writes files from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..records.file import Kind, Records, Stop

#: Linux's letters and bits for why a task left the CPU (`prev_state`).
STATE_OF_STOP: dict[int, tuple[str, int]] = {
    Stop.PREEMPTED: ("R+", 0x100),
    Stop.YIELDED: ("R", 0),
    Stop.BLOCKED: ("S", 1),
    Stop.EXITED: ("X", 0x10),
    Stop.HORIZON: ("R", 0),
}
IDLE_PID = 0
#: Of every task: a policy's own order is no priority of Linux.
PRIO = 120


def task_names(names: Mapping[int, str], pid: int, cpu: int = 0) -> str:
    """Name of a task as Linux's `comm`: at most 15 bytes, no spaces."""
    if pid == 0:
        return f"swapper/{cpu}"
    name = names.get(pid) or f"task-{pid}"
    return "".join(c if c.isprintable() and not c.isspace() else "_" for c in name)[:15]


@dataclass(frozen=True)
class Switch:
    """One CPU goes from one task to the next."""

    t_ns: int  #: When, in nanoseconds since the run began.
    cpu: int  #: Where.
    #: `prev`, `next`: Pids; 0 is the CPU's idle task.
    prev: int
    next: int
    stop: int | None  #: Why `prev` stopped, one of `records.file.Stop`; None for the idle task.


@dataclass(frozen=True)
class Wakeup:
    """A task becomes runnable."""

    t_ns: int  #: When, in nanoseconds since the run began.
    cpu: int  #: The CPU chosen for it.
    pid: int  #: Which task.
    waker: int  #: Pid of who woke or created it; 0: a timer, a device, or the host.
    is_new: bool  #: Whether it is the task's arrival.


@dataclass(frozen=True)
class Note:
    """A remark of the policy."""

    t_ns: int  #: When, in nanoseconds since the run began.
    cpu: int  #: Where.
    #: `key`, `value`: What it said.
    key: int
    value: int


def linux_events(records: Records) -> Iterator[Switch | Wakeup | Note]:
    """Walk a run in order of time."""
    open_stop: dict[int, tuple[int, int, int | None]] = {}
    rows = records.events[["t_ns", "task", "cpu", "kind", "flags", "arg"]].tolist()
    for t_ns, task, cpu, kind, flags, arg in rows:
        # A STOP waits for a RUN of the same instant; when time has moved on,
        # its CPU went idle.
        if open_stop:
            late = [c for c, (then, _, _) in open_stop.items() if then < t_ns]
            for c in late:
                then, prev, stop = open_stop.pop(c)
                yield Switch(then, c, prev, IDLE_PID, stop)
        if kind == Kind.RUN:
            _, prev, stop = open_stop.pop(cpu, (0, IDLE_PID, None))
            yield Switch(t_ns, cpu, prev, task, stop)
        elif kind == Kind.STOP:
            open_stop[cpu] = (t_ns, task, flags)
        elif kind in (Kind.ARRIVE, Kind.WAKE):
            yield Wakeup(t_ns, cpu, task, arg, kind == Kind.ARRIVE)
        elif kind == Kind.NOTE:
            yield Note(t_ns, cpu, arg >> 32, arg & 0xFFFFFFFF)
    for c, (then, prev, stop) in open_stop.items():
        yield Switch(then, c, prev, IDLE_PID, stop)
