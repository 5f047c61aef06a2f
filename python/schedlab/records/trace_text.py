# SPDX-License-Identifier: MIT
"""Read what other tools print about Linux's scheduler, and keep it as events.

Three faces of the same tracepoints: the kernel's own `trace` and `trace_pipe`,
`trace-cmd report`, `perf script`. They differ in the head of a line and, where a
tool formats the event itself, in its fields:

    bash-812   [001] d..2. 5.000001: sched_switch: prev_comm=bash prev_pid=812 ...
    bash   812 [001]       5.000001: sched:sched_switch: bash:812 [120] S ==> ...

Must stay true: a line about the scheduler is understood or refused with its number;
no other line matters.
Read next: hosts/linux/record/record.h, what is written; measure/recording.py.
"""

from __future__ import annotations

import re
import shlex
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import RecordError

HEADER = struct.Struct("<8sIIIIQQQIIII")
EVENT = struct.Struct("<IHBBQIi")
NAME = struct.Struct("<IHBB16s")
MAGIC, VERSION = b"SLEVTS\0\1", 1
(SWITCH, WAKING, WAKEUP, NEW, MIGRATE, FORK, EXIT, EXEC, _YIELD, RUNTIME, NAMED, _MEMBER, LOST, _SYNC,
 END) = range(1, 16)  # fmt: skip
STATE_BLOCKED, STATE_DEAD = 1, 0x10
ELSEWHERE = 2
PIDS_MAX, CPUS_MAX = 4 << 20, 4096
REMEDY = (
    "record with: trace-cmd record -e sched_switch -e sched_waking -e sched_wakeup -e sched_wakeup_new "
    "-e sched_migrate_task -e sched_process_fork -e sched_process_exit"
)

#: First bytes of the tools' own files, and what prints them.
_BINARY = {b"PERFILE2": "perf script --ns -i", b"\x17\x08\x44tracing": "trace-cmd report -t"}

_HEAD = re.compile(
    r"\s*(?P<comm>.*?)[-\s]\s*(?:\d+/)?(?P<pid>\d+)\s+(?:\([\s\d-]*\)\s+)?\[(?P<cpu>\d+)\]\s+"
    r"(?:(?P<flags>[\w.#]{4,7})\s+)?(?P<s>\d+)\.(?P<fraction>\d{1,9}):\s+(?:\w+:)?(?P<event>\w+):\s*(?P<rest>.*)"
)
_LOST = re.compile(r"CPU:?\s*(\d+):?\s*\[(?:LOST )?(\d+) EVENTS(?: DROPPED)?\]")
_SWITCH = (
    re.compile(
        r"prev_comm=(.*) prev_pid=(\d+) prev_prio=(-?\d+) prev_state=(\S+) ==> "
        r"next_comm=(.*) next_pid=(\d+) next_prio=(-?\d+)"
    ),
    re.compile(r"(.*):(\d+) \[(-?\d+)\] (\S+) ==> (.*):(\d+) \[(-?\d+)\]"),
)
_WAKE = (
    re.compile(r"comm=(.*) pid=(\d+) prio=(?:-?\d+)(?: success=\d+)? target_cpu=(\d+)"),
    re.compile(r"(.*):(\d+) \[(?:-?\d+)\](?: ?success=\d+| ?<CANT FAIL>)? CPU:(\d+)"),
)
_MIGRATE = (re.compile(r"comm=(?:.*) pid=(\d+) prio=(?:-?\d+) orig_cpu=(\d+) dest_cpu=(\d+)"),)
_FORK = (re.compile(r"comm=(?:.*) pid=(\d+) child_comm=(.*) child_pid=(\d+)"),)
_EXIT = (re.compile(r"(?:comm=.*? )?pid=(\d+)"), re.compile(r".*:(\d+) \["))
_EXEC = (re.compile(r"filename=(?:.*) pid=(\d+) old_pid=(\d+)"),)
_RUNTIME = (
    re.compile(r"(?:comm=.*? )?pid=(\d+) runtime=(\d+)"),
    re.compile(r".*:(\d+) \[.*runtime[=:] ?(\d+)"),
)


@dataclass
class _Reader:
    """Turns lines into events; what a line is wrong about is raised by its caller."""

    events: list[bytes] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    first_ns: int | None = None
    last_ns: int = 0
    nr_cpus: int = 0
    nr_switches: int = 0

    def line(self, text: str) -> None:
        """Read one line; ValueError says what is wrong with it."""
        found = _HEAD.match(text)
        if found is None:
            self._lost(text)
            return
        handler = _HANDLERS.get(found["event"])
        if handler is None:
            return
        t_ns = int(found["s"]) * 10**9 + int(found["fraction"].ljust(9, "0"))
        if t_ns >= 1 << 63:
            raise ValueError(f"the time {found['s']} s is too large")
        handler(self, t_ns, self._cpu(found["cpu"]), found)
        if self.first_ns is None:
            self.first_ns = t_ns
        # Lines of several CPUs may be out of order; the earliest begins.
        self.first_ns, self.last_ns = min(self.first_ns, t_ns), max(self.last_ns, t_ns)

    def put(
        self, kind: int, t_ns: int, cpu: int, pid: int, other: int = 0, value: int = 0, flags: int = 0
    ) -> None:
        for each in (pid, other if kind in (SWITCH, WAKING, WAKEUP, NEW, FORK, EXEC) else 0):
            if each >= PIDS_MAX:
                raise ValueError(f"pid {each} is more than Linux has")
        self.events.append(EVENT.pack(pid, cpu, kind, flags, t_ns, other, value))

    def name(self, pid: int, comm: str, cpu: int) -> None:
        """Note a name that is new; it stands before the event that had it."""
        if pid and pid < PIDS_MAX and self.names.get(pid) != comm:
            self.names[pid] = comm
            self.events.append(NAME.pack(pid, cpu, NAMED, 0, comm.encode()[:15]))

    def _cpu(self, text: str) -> int:
        cpu = int(text)
        if cpu >= CPUS_MAX:
            raise ValueError(f"CPU {cpu}: at most {CPUS_MAX} are known")
        self.nr_cpus = max(self.nr_cpus, cpu + 1)
        return cpu

    def _lost(self, text: str) -> None:
        found = _LOST.search(text)
        if found is not None and self.first_ns is not None:
            self.put(LOST, self.last_ns, self._cpu(found[1]), 0, min(int(found[2]), 2**32 - 1))

    def switch(self, t_ns: int, cpu: int, line: re.Match[str]) -> None:
        before, pid, _, state, after, next_pid, priority = _fields(_SWITCH, line)
        self.name(int(pid), before, cpu)
        self.name(int(next_pid), after, cpu)
        self.nr_switches += 1
        self.put(SWITCH, t_ns, cpu, int(pid), int(next_pid), _state(state), int(priority) & 0xFF)

    def wake(self, t_ns: int, cpu: int, line: re.Match[str]) -> None:
        comm, pid, target = _fields(_WAKE, line)
        kind = {"sched_waking": WAKING, "sched_wakeup": WAKEUP, "sched_wakeup_new": NEW}[line["event"]]
        if kind == NEW:
            self.name(int(pid), comm, cpu)
        in_interrupt = bool(line["flags"]) and any(mark in line["flags"] for mark in "hsHzZ")
        self.put(kind, t_ns, cpu, int(pid), int(line["pid"]), self._cpu(target), in_interrupt)

    def migrate(self, t_ns: int, cpu: int, line: re.Match[str]) -> None:
        pid, origin, target = _fields(_MIGRATE, line)
        self.put(MIGRATE, t_ns, cpu, int(pid), self._cpu(origin), self._cpu(target))

    def fork(self, t_ns: int, cpu: int, line: re.Match[str]) -> None:
        parent, comm, child = _fields(_FORK, line)
        self.put(FORK, t_ns, cpu, int(child), int(parent))
        self.names[int(child)] = comm

    def exit(self, t_ns: int, cpu: int, line: re.Match[str]) -> None:
        self.put(EXIT, t_ns, cpu, int(_fields(_EXIT, line)[0]))

    def execute(self, t_ns: int, cpu: int, line: re.Match[str]) -> None:
        pid, old = _fields(_EXEC, line)
        self.put(EXEC, t_ns, cpu, int(pid), int(old))

    def runtime(self, t_ns: int, cpu: int, line: re.Match[str]) -> None:
        pid, ran_ns = _fields(_RUNTIME, line)
        # A CPU that wakes a task for another one also does its accounts.
        flags = 0 if pid == line["pid"] else ELSEWHERE
        self.put(RUNTIME, t_ns, cpu, int(pid), min(int(ran_ns), 2**32 - 1), flags=flags)


_HANDLERS = {
    "sched_switch": _Reader.switch, "sched_waking": _Reader.wake, "sched_wakeup": _Reader.wake,
    "sched_wakeup_new": _Reader.wake, "sched_migrate_task": _Reader.migrate, "sched_process_fork": _Reader.fork,
    "sched_process_exit": _Reader.exit, "sched_process_exec": _Reader.execute,
    "sched_stat_runtime": _Reader.runtime,
}  # fmt: skip


def _fields(patterns: Iterable[re.Pattern[str]], line: re.Match[str]) -> tuple[str, ...]:
    """What one of the forms finds in the rest of the line."""
    for pattern in patterns:
        found = pattern.match(line["rest"])
        if found is not None:
            return found.groups()
    raise ValueError(f"{line['event']} without its fields")


def _state(letters: str) -> int:
    """Linux's letters for why a task left, as the bits that matter."""
    if any(letter in letters for letter in "XZxE"):
        return STATE_DEAD
    return 0 if letters.startswith("R") else STATE_BLOCKED


def read_trace(text: str, *, file: str = "trace") -> bytes:
    """Turn printed events into the recorder's own file.

    Notes
    -----
    `trace-cmd` and `perf` print microseconds unless told otherwise (`-t`, `--ns`):
    intervals are then no better than that. A yield looks like a preemption.
    """
    reader = _Reader()
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        try:
            reader.line(line)
        except ValueError as error:
            # A trace that was copied while it grew may end in the middle of a line.
            if number == len(lines):
                break
            raise RecordError(
                f"{file}:{number}: {error}: {line.strip()[:120]!r}; mend or delete the line, or {REMEDY}"
            ) from None
    if not reader.nr_switches:
        raise RecordError(f"{file}: no sched_switch in it, so nobody knows who ran; {REMEDY}")
    header = HEADER.pack(
        MAGIC, VERSION, HEADER.size, EVENT.size, max(reader.nr_cpus, 1), 0, reader.first_ns, 0, True, 0, 0, 0
    )
    end = EVENT.pack(0, 0, END, 0, reader.last_ns, 0, 0)
    return header + b"".join(reader.events) + end


def is_events(path: Path) -> bool:
    """Whether a file is the recorder's own."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error


def write_events(trace: Path, events: Path) -> None:
    """Turn a file of printed events into one of the recorder's."""
    try:
        raw = trace.read_bytes()
        for mark, tool in _BINARY.items():
            if raw.startswith(mark):
                raise RecordError(
                    f"{trace}: is {tool.split()[0]}'s own file, not text; print it, then import that: "
                    f"{tool} {shlex.quote(str(trace))} > trace.txt"
                )
        events.write_bytes(read_trace(raw.decode(errors="replace"), file=str(trace)))
    except OSError as error:
        raise RecordError(f"{error.filename}: {error.strerror}") from error
