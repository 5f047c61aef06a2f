# SPDX-License-Identifier: MIT
"""What the recorded machine charged for scheduling, and its slice: the defaults of a replay.

A wake-up on an idle CPU takes as long as an interrupt needs to get there and the CPU to leave its idle state. That
is no task's CPU time, so a replay has it only if it charges for it (`ipi_ns`). What a switch costs is CPU time of the
recorded tasks; the recorder measures it (costs.c), and replay.py takes it off.

Invariant: only wake-ups between which and the run no other task had the CPU are counted.
Read next: recording.py, which writes both into `run.json`; fidelity.py and replay.py, which read them.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ..records.file import Kind, Overhead, Records

#: Fewer wake-ups say nothing about a machine.
WAKEUPS_MIN = 20
_SLICE = re.compile(r"^se\.slice\s*:\s*([0-9]+)$", re.MULTILINE)


def costs_of(records: Records) -> dict[str, int]:
    """Median delay of wake-ups that a task on another CPU made of an idle CPU, as `--cost` names it; or nothing."""
    events = records.events
    n_rows = len(events)
    kind, cpu = events["kind"], events["cpu"].astype(np.int64)
    is_stolen = (kind == Kind.OVERHEAD) & (events["flags"] == Overhead.STOLEN)
    changes = np.flatnonzero((kind == Kind.RUN) | (kind == Kind.STOP) | is_stolen)
    runs = np.flatnonzero(kind == Kind.RUN)
    wakes = np.flatnonzero((kind == Kind.WAKE) & (events["arg"] > 0))
    if len(wakes) < WAKEUPS_MIN or not len(runs):
        return {}
    before, after = _around(cpu[changes] * n_rows + changes, cpu[wakes] * n_rows + wakes)
    is_between = (after < len(changes)) & (before >= 0)
    last, following = changes[np.maximum(before, 0)], changes[np.minimum(after, len(changes) - 1)]
    task = events["task"].astype(np.int64)
    mine = np.sort(task[runs] * n_rows + runs)
    waker = events["arg"][wakes].astype(np.int64)
    place = np.searchsorted(mine, waker * n_rows + wakes) - 1
    waker_run = mine[np.maximum(place, 0)]
    is_remote = (waker_run // n_rows == waker) & (cpu[waker_run % n_rows] != cpu[wakes])
    is_good = (
        is_between
        & is_remote
        & (cpu[last] == cpu[wakes])
        & (cpu[following] == cpu[wakes])
        & (kind[last] != Kind.RUN)
        & (kind[following] == Kind.RUN)
        & (task[following] == task[wakes])
    )
    times = events["t_ns"].astype(np.int64)
    delays = (times[following] - times[wakes])[is_good]
    ipi_ns = int(np.median(delays)) if len(delays) >= WAKEUPS_MIN else 0
    return {"ipi_ns": ipi_ns} if ipi_ns else {}


def _around(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the keys just before and just after each of those wanted, as positions in `keys` as given."""
    order = np.argsort(keys, kind="stable")
    place = np.searchsorted(keys[order], wanted)
    before = np.where(place > 0, order[np.maximum(place - 1, 0)], -1)
    after = np.where(place < len(keys), order[np.minimum(place, len(keys) - 1)], len(keys))
    return before, after


def slice_of_linux(
    pid: int | None = None, *, proc: Path = Path("/proc"), debug: Path = Path("/sys/kernel/debug")
) -> int | None:
    """Slice of Linux's fair class in ns: of a process that has its own, else this machine's; None: it does not tell."""
    for path, pattern in (
        (proc / str(pid or "self") / "sched", _SLICE),
        (debug / "sched" / "base_slice_ns", re.compile(r"^([0-9]+)$", re.MULTILINE)),
    ):
        try:
            found = pattern.search(path.read_text(errors="replace"))
        except OSError:
            continue
        if found and int(found[1]):
            return int(found[1])
    return None
