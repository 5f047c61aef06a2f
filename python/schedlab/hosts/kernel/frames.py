# SPDX-License-Identifier: MIT
"""Read what the teaching kernel sends: frames of records and of text.

The kernel knows processes, a workload knows tasks; here the pids become those of
the program (task i is pid i + 1), times count from the program's time 0, and what
other processes did on a CPU becomes overhead.

Must stay true: frames and kinds are those of hosts/kernel/lab/channel.h.
Read next: host.py, which boots the machine that sends them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import HostError
from ...records.file import RECORD_DTYPE, Kind, Overhead, Stop

#: struct channel_frame: magic, kind, hart, bytes that follow, seq, arg.
FRAME = struct.Struct("<IHHIIQ")
MAGIC = 0x4C434853
RECORDS, TEXT, END = 1, 2, 3
#: Longest record stream of one hart that is believed, in bytes per frame.
FRAME_BYTES_MAX = 1 << 16
#: Which of several events at one instant comes first, where harts do not say.
_ORDER = np.full(256, 3, np.uint8)
_ORDER[[Kind.STOP, Kind.ARRIVE, Kind.WAKE, Kind.MIGRATE, Kind.RUN]] = (0, 1, 1, 2, 4)
#: Kinds whose argument is a pid.
_PID_ARGUMENT = (Kind.ARRIVE, Kind.WAKE)
_OF_TASK = (Kind.ARRIVE, Kind.WAKE, Kind.RUN, Kind.STOP, Kind.MIGRATE, Kind.ENQUEUE, Kind.ATTR)


@dataclass
class Sent:
    """All that came through the channel."""

    #: list of RECORD_DTYPE, shape (n_harts,): what each hart recorded, in its order; times in ns since boot.
    records: list[Any] = field(default_factory=list)
    lines: list[Any] = field(default_factory=list)  #: The texts, in order.
    n_lost: int = 0  #: Records that did not arrive.
    status: int | None = None  #: Of the job, as its last frame says; None: the end is missing.

    def said(self, word: str) -> list[str]:
        """What follows `word` in each line that begins with it."""
        return [line[len(word) + 1 :] for line in self.lines if line.split(" ", 1)[0] == word]


def read_frames(data: bytes) -> Sent:
    """Take apart what came through the channel.

    >>> head = FRAME.pack(MAGIC, TEXT, 0, 4, 0, 0)
    >>> read_frames(head + b"done" + head[:9]).lines
    ['done']
    """
    sent = Sent()
    chunks: dict[int, list[Any]] = {}
    at = 0
    while at + FRAME.size <= len(data):
        magic, kind, hart, n_bytes, seq, arg = FRAME.unpack_from(data, at)
        if magic != MAGIC or kind not in (RECORDS, TEXT, END) or n_bytes > FRAME_BYTES_MAX:
            raise HostError(
                f"the kernel's channel cannot be read at byte {at}: {data[at : at + 24].hex()}; "
                "kernel and schedlab are of different versions"
            )
        body = data[at + FRAME.size : at + FRAME.size + n_bytes]
        if len(body) < n_bytes:
            break
        if kind == RECORDS:
            mine = chunks.setdefault(hart, [])
            # A frame that is missing would be a hole that nobody counted.
            if seq != len(mine) or n_bytes % RECORD_DTYPE.itemsize:
                raise HostError(f"the kernel's channel lost a chunk of hart {hart} at byte {at}")
            mine.append(np.frombuffer(body, RECORD_DTYPE))
            sent.n_lost += arg
        elif kind == TEXT:
            sent.lines.append(body.decode("utf-8", "replace"))
        else:
            sent.status = arg
        at += FRAME.size + n_bytes
    for hart in range(max(chunks, default=-1) + 1):
        found = chunks.get(hart, [])
        sent.records.append(np.concatenate(found) if found else np.zeros(0, RECORD_DTYPE))
    return sent


def merge_harts(records: list[Any]) -> np.ndarray:
    """Put the records of all harts into one order of time."""
    if len(records) == 1:
        return records[0]
    merged = np.concatenate(records) if records else np.zeros(0, RECORD_DTYPE)
    hart = np.repeat(np.arange(len(records)), [len(part) for part in records])
    order = np.argsort(merged["t_ns"], kind="stable")
    merged, hart = merged[order], hart[order]
    edges = np.flatnonzero(np.diff(merged["t_ns"])) + 1
    begins = np.concatenate(([0], edges))
    ends = np.concatenate((edges, [len(merged)]))
    for begin, end in zip(begins, ends, strict=True):
        if end - begin > 1 and len(set(hart[begin:end].tolist())) > 1:
            merged[begin:end] = _merge_instant(merged[begin:end], hart[begin:end])
    return merged


def _merge_instant(events: np.ndarray, hart: np.ndarray) -> np.ndarray:
    """Order the events of one instant, as a merge of the harts' queues."""
    queues = {h: list(np.flatnonzero(hart == h)) for h in set(hart.tolist())}
    chosen = []
    while queues:
        first = min(queues, key=lambda h: (_ORDER[events["kind"][queues[h][0]]], h))
        chosen.append(queues[first].pop(0))
        if not queues[first]:
            del queues[first]
    return events[chosen]


@dataclass(frozen=True)
class Played:
    """A workload as the kernel played it."""

    events: np.ndarray  #: RECORD_DTYPE: with the program's pids; times in ns since its time 0.
    end_ns: int  #: When the run ended: the horizon, or the last end of a task.
    n_exited: int  #: Tasks that came to their end.
    tasks: dict[int, int]  #: Pid in the kernel to pid in the program.


def played_records(sent: Sent, parents: np.ndarray) -> Played:
    """Make a workload's records of the kernel's."""
    start = [line.split() for line in sent.said("start")]
    if not start:
        raise HostError("the kernel never started the workload")
    start_ns, horizon_ns = int(start[0][0]), int(start[0][2])
    tasks = {int(pid): int(task) + 1 for task, pid in (s.split() for s in sent.said("task"))}
    events = merge_harts(sent.records)
    # Before time 0 there are only the processes that set the workload up.
    events = events[events["t_ns"] >= start_ns].copy()
    events["t_ns"] -= start_ns
    own = _renumber(events, tasks, parents)
    events = _others_are_overhead(events, own)
    ended = (events["kind"] == Kind.STOP) & (events["flags"] == Stop.EXITED)
    n_exited = int(ended.sum())
    last_ns = int(events["t_ns"][ended].max()) if n_exited else 0
    is_cut = horizon_ns and (n_exited < len(tasks) or last_ns > horizon_ns)
    end_ns = horizon_ns if is_cut else last_ns
    events = _cut(events, end_ns) if is_cut else events[events["t_ns"] <= end_ns]
    if sent.n_lost:
        lost = np.array([(end_ns, 0, 0, Kind.LOST, 0, sent.n_lost)], RECORD_DTYPE)
        events = np.concatenate((events, lost))
    return Played(events, end_ns, n_exited, tasks)


def _renumber(events: np.ndarray, tasks: dict[int, int], parents: np.ndarray) -> np.ndarray:
    """Give the tasks their pids of the program; return which events are theirs."""
    pids = np.zeros(max(tasks, default=0) + 1, np.uint32)
    for kernel_pid, pid in tasks.items():
        pids[kernel_pid] = pid

    def program_pid(values: Any) -> Any:
        known = values < len(pids)
        return np.where(known, pids[np.where(known, values, 0).astype(np.int64)], 0)

    own = program_pid(events["task"])
    is_own = (own > 0) | ~np.isin(events["kind"], _OF_TASK)
    events["task"] = np.where(own > 0, own, events["task"])
    has_pid = np.isin(events["kind"], _PID_ARGUMENT)
    events["arg"][has_pid] = program_pid(events["arg"][has_pid])
    # The kernel's parent is whoever made the process, the program's who started it.
    arrives = (events["kind"] == Kind.ARRIVE) & (own > 0)
    events["arg"][arrives] = parents[events["task"][arrives].astype(np.int64) - 1]
    return is_own


def _others_are_overhead(events: np.ndarray, is_own: np.ndarray) -> np.ndarray:
    """Turn the time that other processes had a CPU into overhead."""
    others = ~is_own & np.isin(events["kind"], (Kind.RUN, Kind.STOP))
    if others.any():
        for cpu in set(events["cpu"][others].tolist()):
            since_ns = None
            for row in np.flatnonzero(others & (events["cpu"] == cpu)).tolist():
                if events["kind"][row] == Kind.RUN:
                    since_ns = int(events["t_ns"][row])
                    continue
                begin_ns = 0 if since_ns is None else since_ns
                took_ns = int(events["t_ns"][row]) - begin_ns
                event = (events["t_ns"][row], 0, cpu, Kind.OVERHEAD, Overhead.SWITCH, took_ns)
                events[row] = np.array(event, RECORD_DTYPE)
                is_own[row] = True
    return events[is_own]


def _cut(events: np.ndarray, end_ns: int) -> np.ndarray:
    """End the run at the horizon: what is on a CPU then, stops there."""
    events = events[events["t_ns"] < end_ns]
    last: dict[int, np.void] = {}
    for event in events[np.isin(events["kind"], (Kind.RUN, Kind.STOP))]:
        last[int(event["cpu"])] = event
    stops = [
        (end_ns, int(event["task"]), cpu, Kind.STOP, Stop.HORIZON, end_ns - int(event["t_ns"]))
        for cpu, event in sorted(last.items())
        if event["kind"] == Kind.RUN
    ]
    return np.concatenate((events, np.array(stops, RECORD_DTYPE)))


def read_overhead(lines: list[str]) -> dict[str, Any]:
    """Read what the instructions were spent on.

    >>> read_overhead(["rr user=10/1 sched=90/3"])["rr"]["sched"]
    {'instructions': 90, 'times': 3}
    """
    found: dict[str, dict[str, dict[str, int]]] = {}
    for line in lines:
        policy, *items = line.split()
        found[policy] = {}
        for item in items:
            name, _, counts = item.partition("=")
            instructions, _, times = counts.partition("/")
            found[policy][name] = {"instructions": int(instructions), "times": int(times)}
    return found
