# SPDX-License-Identifier: MIT
"""One run of each policy in time: fairness so far, and the slices of the Gantt chart.

Slices are packed as small numbers (LEB128), column by column, deflated and in
base64: a hundred thousand of them take about 300 kB of a page, and a browser
unpacks them in a few milliseconds.

Must stay true: page/slices.js reads what `pack_slices` writes; the last
point of fairness over time is the `fairness_jain` of the run.
Read next: page/gantt.js, which draws them.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..metrics.fairness import deserved_ns, jain
from ..metrics.timeline import Timeline
from ..plots.gantt import WAITED, Slices, slices_of
from ..program import layout
from ..program.file import find_program
from ..records.file import Kind, Stop

REASON_BITS, CPU_BITS = 2, 5
#: Slices of one run, and of a whole page, that are embedded.
SLICES_MAX, PAGE_SLICES_MAX = 250_000, 600_000


def waited_ns(slices: Slices, begin_ns: int, end_ns: int) -> int:
    """What all tasks together waited for a CPU from one moment to another."""
    waits = slices.state == WAITED
    inside = np.minimum(slices.end_ns[waits], end_ns) - np.maximum(slices.begin_ns[waits], begin_ns)
    return int(np.maximum(inside, 0).sum())


def longest_waits(slices: Slices, *, n_max: int) -> list[tuple[int, int, int]]:
    """Task, begin and end of the longest waits for a CPU, the longest first; none that is near a longer one."""
    waits = np.flatnonzero(slices.state == WAITED)
    lengths = slices.end_ns[waits] - slices.begin_ns[waits]
    found: list[tuple[int, int, int]] = []
    for i in waits[np.argsort(-lengths, kind="stable")].tolist():
        begin, end = int(slices.begin_ns[i]), int(slices.end_ns[i])
        if len(found) == n_max or begin == end:
            break
        # Not within the window that shows the longer one; see `window_of`.
        if all(end <= low or begin >= high for low, high in (window_of(b, e) for _, b, e in found)):
            found.append((int(slices.pid[i]), begin, end))
    return found


def window_of(begin_ns: int, end_ns: int) -> tuple[int, int]:
    """What is shown of the time around a stretch: half of its length before it and after."""
    margin = (end_ns - begin_ns + 1) // 2
    return max(0, begin_ns - margin), end_ns + margin


def pack_numbers(values: np.ndarray) -> bytes:
    """Write whole numbers as LEB128: seven bits a byte, the low ones first.

    >>> pack_numbers(np.array([1, 300])).hex()
    '01ac02'
    """
    values = np.asarray(values, np.uint64)
    n_bytes = np.ones(len(values), np.int64)
    for k in range(1, 9):
        n_bytes += values >= np.uint64(1 << 7 * k)
    first = np.cumsum(n_bytes) - n_bytes
    packed = np.zeros(int(n_bytes.sum()), np.uint8)
    for k in range(9):
        has = n_bytes > k
        digit = (values[has] >> np.uint64(7 * k)) & np.uint64(0x7F)
        packed[first[has] + k] = digit | np.where(n_bytes[has] > k + 1, 0x80, 0).astype(np.uint64)
    return packed.tobytes()


def pack_slices(slices: Slices) -> str:
    """Slices as the text that stands in a page."""
    pids, first, counts = np.unique(slices.pid, return_index=True, return_counts=True)
    before = np.zeros(len(slices.pid), np.int64)
    before[1:] = slices.end_ns[:-1]
    before[first] = 0
    code = slices.state | slices.reason << REASON_BITS | slices.cpu << CPU_BITS
    columns = ([len(pids)], pids, counts, slices.begin_ns - before, slices.end_ns - slices.begin_ns, code)
    data = b"".join(pack_numbers(np.asarray(column)) for column in columns)
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def weights_of(folder: Path, run: dict[str, Any]) -> np.ndarray:
    """Weights of a run's tasks, from the program that `schedlab run` left beside it.

    A recording of Linux has no program, but its tasks' priorities.
    """
    if not run["program_hash"] and run.get("tasks"):
        return np.array([layout.weight_of_priority(task["priority"]) for task in run["tasks"]], np.int64)
    program = find_program(folder, run["program_hash"])
    if program is not None:
        return program.tasks["weight"]
    raise FileNotFoundError(
        f"{folder.parent.parent / 'programs'}: the program of seed {run['seed']} is gone, and with it the tasks' weights; "
        "run again to see fairness over time"
    )


def fairness_so_far(
    timeline: Timeline, *, weight: ArrayLike | None = None, n_steps: int
) -> list[tuple[int, float]]:
    """Fairness from the start of a run up to each of some moments.

    Each point is `fairness_jain` of the run as it would be if it ended there.
    """
    records = timeline.records
    spans = timeline.spans
    runs = np.flatnonzero(spans.is_run)
    begin, end = spans.begin_ns[runs], spans.end_ns[runs]
    points = []
    for step in range(1, n_steps + 1):
        until = records.end_ns * step // n_steps
        part = Timeline(records.until(until))
        tasks = part.by_task
        if not len(tasks.keys):
            continue
        length = np.maximum(end - begin, 1)
        done = np.where(end <= until, 1.0, np.clip((until - begin) / length, 0, 1))
        received = _by_pid(tasks.keys, spans.task[runs], spans.ran_ns[runs] * done)
        deserved = deserved_ns(part, weight=weight)
        has_ended = (tasks.kind[tasks.last] == Kind.STOP) & (tasks.flags[tasks.last] == Stop.EXITED)
        counts = (deserved > 0) & ~((received == 0) & has_ended)
        index = jain(received[counts] / deserved[counts])
        if index is not None:
            points.append((until, index))
    return points


def _by_pid(pids: np.ndarray, pid: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Sum amounts by pid, in the order of `pids`; amounts of others are dropped."""
    place = np.searchsorted(pids, pid)
    known = (place < len(pids)) & (pids[np.minimum(place, len(pids) - 1)] == pid)
    return np.bincount(place[known], weights=amount[known], minlength=len(pids))


def chart_of(timeline: Timeline, names: Mapping[int, str], *, n_max: int) -> dict[str, Any]:
    """All that the page's Gantt chart needs of one run."""
    slices = slices_of(timeline, n_max=n_max)
    return {
        "end_ns": timeline.records.end_ns,
        "shown_until_ns": slices.shown_until_ns,
        "cpus": timeline.records.n_cpus,
        "n_slices": len(slices.pid),
        "names": {int(pid): names.get(int(pid), "task") for pid in np.unique(slices.pid)},
        "slices": slices,
        "packed": pack_slices(slices),
    }
