# SPDX-License-Identifier: MIT
"""What all tasks of this machine do, read while it is recorded; for `load --guard` and `top`.

    recorder (real-time) --events in memory--> EventStream.read() --> LiveTasks.feed() --> latencies, sums by CPU and task

Events are dealt with by the array, never one by one, which is what makes a busy machine cheap to watch.

Invariant: a read event's memory is given back at once; nothing grows with the time that is watched.
Read next: hosts/linux/record/record.h, which has the events.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np

from ..hosts.linux.recorder import Recorder

EVENT = np.dtype([("pid", "<u4"), ("cpu", "<u2"), ("kind", "u1"), ("flags", "u1"), ("t_ns", "<u8"),
                  ("other", "<u4"), ("value", "<i4")])  # fmt: skip
HEADER_BYTES = 64
#: Of enum event_kind.
SWITCH, WAKING, WAKEUP, NEW, MIGRATE, EXIT, RUNTIME, NAME, MEMBER, LOST, SYNC = (
    1, 2, 3, 4, 5, 7, 10, 11, 12, 13, 14)  # fmt: skip
#: Bits of SWITCH's `value` with any of which a task is not runnable; flag of a RUNTIME that another CPU tells of.
_BLOCKED, _ELSEWHERE = 0xFF, 2
#: What a row says of its task; the last two depend on the row before.
_ASLEEP, _WAITS, _RUNS, _WOKEN, _MOVED = range(5)
_ROW = np.dtype([("pid", "<i8"), ("t_ns", "<i8"), ("says", "i1"), ("cpu", "<i4"), ("woken_ns", "<i8")])
#: fallocate(2): FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE.
_PUNCH = 3
_LIBC = ctypes.CDLL(None, use_errno=True)


class EventStream:
    """A recorder of all tasks whose events are read as they come, from memory that is given back."""

    def __init__(self) -> None:
        self._file = os.memfd_create("schedlab-live")
        self._offset = HEADER_BYTES
        try:
            self.recorder = Recorder()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.recorder.close()
        os.close(self._file)

    def begin(self) -> bytes:
        """Begin to record; the header of the file of events."""
        self.recorder.record_all(Path(f"/proc/{os.getpid()}/fd/{self._file}"))
        return os.pread(self._file, HEADER_BYTES, 0)

    def read(self) -> bytes:
        """Whole events that have come since; their memory is given back."""
        n_bytes = max(os.fstat(self._file).st_size - self._offset, 0)
        data = os.pread(self._file, n_bytes, self._offset)
        data = data[: len(data) - len(data) % EVENT.itemsize]
        self._offset += len(data)
        _LIBC.fallocate(self._file, _PUNCH, ctypes.c_long(HEADER_BYTES), ctypes.c_long(self._offset))
        return data


class LiveTasks:
    """Who runs, who waits and since when, from a recorder's events as they come.

    All is known up to `seen_ns` on CLOCK_MONOTONIC but `n_lost` events that the kernel's rings had no room
    for. By CPU: `current`, the pid that runs, and `queue`, the number of runnable tasks, the running one
    among them; `waits_ns` by CPU and `waited_ns` by pid are the time, in the last feed, that tasks were
    runnable and did not run.
    """

    def __init__(self) -> None:
        self._rest = np.zeros(0, EVENT)
        self._rows = np.zeros(0, _ROW)
        self.n_lost = self.seen_ns = 0
        self.waits_ns: dict[int, int] = {}
        self.waited_ns: dict[int, int] = {}
        self.current: dict[int, int] = {}
        self.queue: dict[int, int] = {}

    @property
    def waiting(self) -> dict[int, int]:
        """Tasks that were woken and have not run: since when."""
        rows = self._rows[(self._rows["says"] == _WAITS) & (self._rows["woken_ns"] > 0)]
        return dict(zip(rows["pid"].tolist(), rows["woken_ns"].tolist(), strict=True))

    def ages(self) -> np.ndarray:
        """How long those that wait have waited."""
        return self.seen_ns - np.array([*self.waiting.values()], np.int64)

    def feed(self, data: bytes) -> np.ndarray:
        """Latencies of the tasks that began to run; events after the last SYNC, of which some may be missing, wait."""
        events = np.concatenate([self._rest, np.frombuffer(data, EVENT)])
        events = events[(events["kind"] != NAME) & (events["kind"] != MEMBER)]
        syncs = events[events["kind"] == SYNC]
        if not len(syncs):
            self._rest = events
            return np.zeros(0, np.int64)
        before_ns, self.seen_ns = self.seen_ns, int(syncs["t_ns"].max())
        is_late = events["t_ns"] > self.seen_ns
        self._rest, events = events[is_late], events[~is_late]
        lost = int(events["other"][events["kind"] == LOST].sum())
        if lost:
            # Of tasks that waited it is not known any more.
            self.n_lost += lost
            self._rows = self._rows[:0]
        rows = np.concatenate([self._rows, _rows_of(events)])
        rows, woken_ns = _follow(np.concatenate([rows, _hidden_stops(self._rows, events)]))
        if not before_ns:
            before_ns = int(rows["t_ns"].min()) if len(rows) else self.seen_ns
        self._sum(rows, before_ns)
        is_last = np.append(rows["pid"][1:] != rows["pid"][:-1], True)[: len(rows)]
        # A run that follows a wake-up, with nothing between them.
        was_woken = np.append(0, woken_ns[:-1])[: len(rows)]
        was_woken[np.append(True, is_last[:-1])[: len(rows)]] = 0
        began = (rows["says"] == _RUNS) & (was_woken > 0)
        self._keep(rows, woken_ns, is_last)
        return np.maximum(rows["t_ns"][began] - was_woken[began], 0)

    def _sum(self, rows: np.ndarray, before_ns: int) -> None:
        """Add up what was since the last feed."""
        ends = np.append(rows["t_ns"][1:], self.seen_ns)[: len(rows)]
        ends[np.append(rows["pid"][1:] != rows["pid"][:-1], True)[: len(rows)]] = self.seen_ns
        ns = np.maximum(ends - np.maximum(rows["t_ns"], before_ns), 0)
        waits = rows["says"] == _WAITS
        self.waits_ns = _sums(rows["cpu"][waits], ns[waits])
        self.waited_ns = _sums(rows["pid"][waits], ns[waits])

    def _keep(self, rows: np.ndarray, woken_ns: np.ndarray, is_last: np.ndarray) -> None:
        """What the next feed goes on with: one row of each runnable task, and one running task of each CPU."""
        kept = rows[is_last]
        kept["woken_ns"] = woken_ns[is_last]
        running = kept[kept["says"] == _RUNS]
        running = running[np.lexsort((running["t_ns"], running["cpu"]))]
        is_latest = np.append(running["cpu"][1:] != running["cpu"][:-1], True)[: len(running)]
        self._rows = np.concatenate([kept[kept["says"] == _WAITS], running[is_latest]])
        self._show()

    def _show(self) -> None:
        """Where no task runs but one was preempted, by the recorder or a task that has stopped, it runs again."""
        rows = self._rows[(self._rows["says"] == _RUNS) | (self._rows["woken_ns"] == 0)]
        rows = rows[np.lexsort((rows["t_ns"], rows["says"]))]
        self.current = dict(zip(rows["cpu"].tolist(), rows["pid"].tolist(), strict=True))
        self.queue = _sums(self._rows["cpu"], np.ones(len(self._rows), np.int64))

    def drop_stopped(self, stopped: list[int]) -> None:
        """Tasks of `current` of which it is known that they do not run any more: some kernels hide that."""
        self._rows = self._rows[~np.isin(self._rows["pid"], stopped)]
        self._show()


def _sums(keys: np.ndarray, values: np.ndarray) -> dict[int, int]:
    """Sum of the values of each key; equal keys are mostly together."""
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    found: dict[int, int] = {}
    sums = np.add.reduceat(values, starts).tolist() if len(starts) else []
    for key, value in zip(keys[starts].tolist(), sums, strict=True):
        found[key] = found.get(key, 0) + value
    return found


def _rows_of(events: np.ndarray) -> np.ndarray:
    """What each event says of a task; a switch says something of two."""
    kind, cpu = events["kind"], events["cpu"].astype(np.int64)
    t_ns, other = events["t_ns"].astype(np.int64), events["other"].astype(np.int64)
    switch, runtime, gone = kind == SWITCH, kind == RUNTIME, kind == EXIT
    wake, woken, moved = (kind == WAKING) | (kind == NEW), kind == WAKEUP, kind == MIGRATE
    blocked = (events["value"] & _BLOCKED) != 0
    # Some kernels hide a switch from the idle task; how long a task has run says when that was.
    parts = [
        (switch, "pid", t_ns, np.where(blocked, _ASLEEP, _WAITS), cpu),
        (switch, "other", t_ns, _RUNS, cpu),
        (runtime, "pid", t_ns - other, _RUNS, np.where(events["flags"] & _ELSEWHERE, -1, cpu)),
        (gone, "pid", t_ns, _ASLEEP, cpu),
        (wake, "pid", t_ns, _WOKEN, events["value"]),
        (woken | moved, "pid", t_ns, _MOVED, events["value"]),
    ]
    rows = np.zeros(sum(int(chosen.sum()) for chosen, *_ in parts), _ROW)
    at = 0
    for chosen, who, when, says, where in parts:
        part = rows[at : at + int(chosen.sum())]
        at += len(part)
        part["pid"], part["t_ns"] = events[who][chosen], when[chosen]
        part["says"] = says[chosen] if isinstance(says, np.ndarray) else says
        part["cpu"] = where[chosen]
    rows["woken_ns"][rows["says"] == _WOKEN] = rows["t_ns"][rows["says"] == _WOKEN]
    return rows[rows["pid"] > 0]


def _hidden_stops(carried: np.ndarray, events: np.ndarray) -> np.ndarray:
    """Ends of runs that no switch tells of: the next switch of that CPU is from another task.

    When it was is not known; that it was at once makes up no waiting.
    """
    switches = events[events["kind"] == SWITCH]
    carried = carried[carried["says"] == _RUNS]
    cpu = np.concatenate([carried["cpu"], switches["cpu"]])
    t_ns = np.concatenate([carried["t_ns"], switches["t_ns"].astype(np.int64)])
    before = np.concatenate([np.zeros(len(carried), np.int64), switches["pid"].astype(np.int64)])
    after = np.concatenate([carried["pid"], switches["other"].astype(np.int64)])
    order = np.lexsort((t_ns, cpu))
    cpu, t_ns, before, after = cpu[order], t_ns[order], before[order], after[order]
    hidden = np.flatnonzero((cpu[1:] == cpu[:-1]) & (before[1:] != after[:-1]) & (after[:-1] > 0))
    rows = np.zeros(len(hidden), _ROW)
    rows["pid"], rows["t_ns"], rows["cpu"] = after[hidden], t_ns[hidden] + 1, cpu[hidden]
    return rows


def _follow(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows by task and time, each with what its task does from then on; and since when it has been woken, or 0."""
    # At one instant a wake-up comes before a run, and that before the end of one.
    rank = np.array([4, 4, 2, 0, 1], np.int8)[rows["says"]]
    rank[: len(rows)][rows["woken_ns"] > 0] = 0
    if not len(rows):
        return rows, np.zeros(0, np.int64)
    # One key of 22, 38 and 3 bits; what is older than four minutes keeps its place before all else.
    age_ns = np.minimum(rows["t_ns"].max() - rows["t_ns"], (1 << 38) - 1)
    rows = rows[np.argsort(rows["pid"] << 41 | ((1 << 38) - 1 - age_ns) << 3 | rank)]
    n, says = len(rows), rows["says"]
    index = np.arange(n)
    first = np.maximum.accumulate(np.where(np.append(True, rows["pid"][1:] != rows["pid"][:-1]), index, 0))

    def last(chosen: np.ndarray) -> np.ndarray:
        """Index of the last such row of the same task, or -1."""
        found = np.maximum.accumulate(np.where(chosen, index, -1))
        return np.where(found >= first, found, -1)

    base = last((says == _ASLEEP) | (says == _WAITS) | (says == _RUNS))
    state = np.where(base >= 0, says[base], _ASLEEP)
    wake = last((says == _WOKEN) | ((says == _WAITS) & (rows["woken_ns"] > 0)))
    # A task that is woken while it still runs goes on running.
    is_woken = (wake >= 0) & (wake >= base) & (state != _RUNS)
    # The first wake-up counts if several follow each other.
    since = rows["woken_ns"].copy()
    wakes = np.flatnonzero(rows["woken_ns"] > 0)
    groups = first[wakes] * (n + 1) + base[wakes] + 1
    _, start = np.unique(groups, return_index=True)
    earliest = np.zeros(n, np.int64)
    earliest[wakes[start]] = 1
    head = last(earliest > 0)
    woken_ns = np.where(is_woken & (head >= 0), since[head], 0)
    known = last(rows["cpu"] >= 0)
    rows["cpu"] = np.where(known >= 0, rows["cpu"][known], 0)
    rows["says"] = np.where(is_woken, _WAITS, state)
    return rows, woken_ns
