# SPDX-License-Identifier: MIT
"""Who had the CPU when: a chart for the terminal, and one as SVG.

Each task is a row, time goes to the right. A cell or rectangle says what the task
did then: it ran, it waited for a CPU, or it wanted none.

Must stay true: in the terminal a task that ran at all within a cell is shown to
have run; nothing shorter than a cell disappears.
Read next: metrics/timeline.py, where the intervals come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import UsageError
from ..metrics.timeline import Timeline
from ..records.file import Kind, Records, Stop
from ..stats.sentences import show_time
from ..units import format_duration

RAN, WAITED, BLOCKED = 0, 1, 2
#: Reasons above those of `records.file.Stop`: still running when the run ended.
STILL_RUNNING = 7
MARK_FULL, MARK_PART, MARK_WAIT = "█", "▌", "·"
#: Colours that are told apart by people who see few, after Okabe and Ito 2008.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")
WAIT_COLOUR = "#dddddd"
ROW_PX, BAR_PX, LABEL_PX, AXIS_PX = 22, 16, 130, 28
TASKS_MAX = 500
MARKS_MAX = 5000


@dataclass(frozen=True)
class Slices:
    """What tasks did, one entry per stretch of time, by task and then by time."""

    pid: np.ndarray = field(repr=False)  #: int64, shape (n,): whose.
    #: `begin_ns`, `end_ns`: int64, shape (n,): from when to when.
    begin_ns: np.ndarray = field(repr=False)
    end_ns: np.ndarray = field(repr=False)
    state: np.ndarray = field(repr=False)  #: int64, shape (n,): `RAN`, `WAITED` for a CPU or `BLOCKED`.
    #: int64, shape (n,): of a run: how it ended, one of `records.file.Stop` or `STILL_RUNNING`; 0 otherwise.
    reason: np.ndarray = field(repr=False)
    cpu: np.ndarray = field(repr=False)  #: int64, shape (n,): of a run: where; 0 otherwise.
    shown_until_ns: int  #: Later slices are left out; the end of the run where all are there.


@dataclass(frozen=True)
class Mark:
    """What a policy was called for on a CPU, or an arrow from there to a task's row, or to another CPU's."""

    t_ns: int
    cpu: int
    text: str  #: Shown where the pointer is.
    to_pid: int = 0  #: It has inserted this task.
    to_cpu: int = -1  #: It has kicked this CPU.


def slices_of(timeline: Timeline, *, n_max: int | None = None) -> Slices:
    """Cut every task's life into stretches."""
    tasks, length = timeline.by_task, timeline.duration_ns
    ran = tasks.kind == Kind.RUN
    waited = timeline.is_runnable_after
    blocked = (tasks.kind == Kind.STOP) & (tasks.flags == Stop.BLOCKED)
    chosen = np.flatnonzero(ran | ((waited | blocked) & (length > 0)))
    until = timeline.records.end_ns
    if n_max is not None and len(chosen) > n_max:
        # Everything that begins before the moment of the first one left out.
        until = int(np.partition(tasks.t_ns[chosen], n_max)[n_max])
        chosen = chosen[tasks.t_ns[chosen] < until]
    reason = np.full(len(tasks.kind), STILL_RUNNING, np.int64)
    reason[:-1] = np.where(tasks.kind[1:] == Kind.STOP, tasks.flags[1:], STILL_RUNNING)
    reason[tasks.last] = STILL_RUNNING
    begin, is_run = tasks.t_ns[chosen], ran[chosen]
    return Slices(
        pid=tasks.task[chosen].astype(np.int64),
        begin_ns=begin,
        end_ns=np.minimum(begin + length[chosen], until),
        state=np.where(is_run, RAN, np.where(blocked[chosen], BLOCKED, WAITED)),
        reason=np.where(is_run, reason[chosen], 0),
        cpu=np.where(is_run, tasks.cpu[chosen].astype(np.int64), 0),
        shown_until_ns=until,
    )


def in_window(records: Records, *, begin_ns: int = 0, end_ns: int | None = None) -> Slices:
    """Runs and waits of a window, cut to it; a run of no length may stand on the very edge."""
    end_ns = records.end_ns if end_ns is None else min(end_ns, records.end_ns)
    if not 0 <= begin_ns < end_ns:
        raise UsageError(
            f"the window from {begin_ns} ns to {end_ns} ns is empty; the run goes from 0 to {records.end_ns} ns"
        )
    found = slices_of(Timeline(records))
    begin, end = np.maximum(found.begin_ns, begin_ns), np.minimum(found.end_ns, end_ns)
    chosen = ((found.state == RAN) & (begin <= end)) | ((found.state == WAITED) & (begin < end))
    return Slices(
        pid=found.pid[chosen],
        begin_ns=begin[chosen],
        end_ns=end[chosen],
        state=found.state[chosen],
        reason=found.reason[chosen],
        cpu=found.cpu[chosen],
        shown_until_ns=end_ns,
    )


def _rows(found: Slices, n_max: int) -> tuple[list[int], int]:
    """Pids to draw, and how many more there are."""
    pids = sorted(set(found.pid.tolist()))
    return pids[:n_max], max(0, len(pids) - n_max)


def draw_text(
    records: Records,
    *,
    names: Mapping[int, str],
    begin_ns: int = 0,
    end_ns: int | None = None,
    width: int = 100,
    n_tasks_max: int = 40,
) -> str:
    """Chart for a terminal."""
    if width < 40:
        raise UsageError(f"a chart needs at least 40 columns, not {width}")
    found = in_window(records, begin_ns=begin_ns, end_ns=end_ns)
    end_ns = records.end_ns if end_ns is None else min(end_ns, records.end_ns)
    pids, n_more = _rows(found, n_tasks_max)
    labels = {pid: f"{names.get(pid, 'task')}[{pid}]"[:20] for pid in pids}
    label_width = max([len(label) for label in labels.values()] or [4]) + 1
    n_cells = width - label_width
    cell_ns = (end_ns - begin_ns) / n_cells
    lines = []
    for pid in pids:
        mine = np.flatnonzero(found.pid == pid)
        lines.append(labels[pid].ljust(label_width) + _cells(found, mine, begin_ns, cell_ns, n_cells))
    # Three digits where the exact time, as of a run that failed, has nine.
    left, right = (
        time if len(time) <= 8 else show_time(at_ns)
        for at_ns in (begin_ns, end_ns)
        for time in [format_duration(at_ns)]
    )
    left, right = f"{left} ", f" {right}"
    lines.append(" " * label_width + left + "─" * (n_cells - len(left) - len(right)) + right)
    if n_more:
        lines.append(f"and {n_more} tasks more; choose a shorter window or --svg")
    return "\n".join(line.rstrip() for line in lines)


def _cells(found: Slices, mine: np.ndarray, begin_ns: int, cell_ns: float, n_cells: int) -> str:
    """One row of the terminal's chart."""
    ran_ns = np.zeros(n_cells)
    has_run = np.zeros(n_cells, bool)
    waited_ns = np.zeros(n_cells)
    for i in mine:
        first = (found.begin_ns[i] - begin_ns) / cell_ns
        last = (found.end_ns[i] - begin_ns) / cell_ns
        a, b = min(int(first), n_cells - 1), min(int(last), n_cells - 1)
        covered = np.ones(b - a + 1)
        covered[0] -= first - a
        covered[-1] -= max(0.0, b + 1 - last)
        if found.state[i] == RAN:
            ran_ns[a : b + 1] += covered
            # A run that ends on the edge of a cell does not reach into it.
            has_run[a : b + 1] |= (covered > 0) | (last == first)
        else:
            waited_ns[a : b + 1] += covered
    marks = np.where(
        ran_ns > 0.75, MARK_FULL, np.where(has_run, MARK_PART, np.where(waited_ns > 0.25, MARK_WAIT, " "))
    )
    return "".join(marks.tolist())


def draw_svg(
    records: Records,
    *,
    names: Mapping[int, str],
    begin_ns: int = 0,
    end_ns: int | None = None,
    width_px: int = 1000,
    title: str = "",
    marks: Sequence[Mark] | None = None,
) -> str:
    """Chart as SVG, for a paper or a page; with `marks` each CPU has a row, too."""
    from ..html import render

    found = in_window(records, begin_ns=begin_ns, end_ns=end_ns)
    end_ns = records.end_ns if end_ns is None else min(end_ns, records.end_ns)
    pids, n_more = _rows(found, TASKS_MAX)
    if n_more:
        raise UsageError(
            f"{len(pids) + n_more} tasks are in the window, an SVG shows {TASKS_MAX}: choose a shorter window"
        )
    scale = (width_px - LABEL_PX - 10) / (end_ns - begin_ns)
    top_px = 30 if title else 6
    names = {pid: f"{names.get(pid, 'task')}[{pid}]" for pid in pids}
    times = [begin_ns + (end_ns - begin_ns) * i // 4 for i in range(5)]
    labels = list(names.values())
    lanes = {} if marks is None else {f"CPU {cpu}": len(pids) + cpu for cpu in range(records.n_cpus)}
    seen = [mark for mark in marks or () if begin_ns <= mark.t_ns <= end_ns]
    if len(seen) > MARKS_MAX:
        raise UsageError(
            f"{len(seen)} callbacks and arrows are in the window, an SVG shows {MARKS_MAX}: choose a shorter window"
        )
    middle = top_px + BAR_PX // 2
    rows = {pid: middle + ROW_PX * row for row, pid in enumerate(pids)}
    cpus = [middle + ROW_PX * row for row in lanes.values()]
    return render(
        "gantt.svg",
        width=width_px,
        height=top_px + ROW_PX * (len(pids) + len(lanes)) + AXIS_PX,
        left=LABEL_PX,
        top=top_px,
        row_px=ROW_PX,
        bar_px=BAR_PX,
        title=title,
        labels=[*labels, *lanes],
        marks=[
            (x, cpus[mark.cpu], mark.text)
            for mark in seen
            if not mark.to_pid and mark.to_cpu < 0
            for x in [LABEL_PX + (mark.t_ns - begin_ns) * scale]
        ],
        arrows=[
            (LABEL_PX + (mark.t_ns - begin_ns) * scale, cpus[mark.cpu], to, bool(mark.to_pid), mark.text)
            for mark in seen
            for to in [
                rows.get(mark.to_pid)
                if mark.to_pid
                else cpus[mark.to_cpu]
                if 0 <= mark.to_cpu < len(cpus)
                else None
            ]
            if to is not None and to != cpus[mark.cpu]
        ],
        bars=_bars(found, names, begin_ns, scale, top_px),
        ticks=[(LABEL_PX + (t_ns - begin_ns) * scale, format_duration(t_ns)) for t_ns in times],
    )


def _bars(
    found: Slices, names: Mapping[int, str], begin_ns: int, scale: float, top_px: int
) -> Iterator[tuple[float, int, float, int, str, str]]:
    """Place, size, colour and words of one rectangle per interval; waits are thinner than runs."""
    row_of = {pid: row for row, pid in enumerate(names)}
    columns = (found.pid, found.begin_ns, found.end_ns, found.state, found.cpu)
    for pid, begin, end, state, cpu in zip(*(column.tolist() for column in columns), strict=True):
        ran = state == RAN
        did = f"ran on CPU {cpu}" if ran else "waited"
        yield (
            LABEL_PX + (begin - begin_ns) * scale,
            top_px + ROW_PX * row_of[pid] + (0 if ran else BAR_PX // 2 - 2),
            max((end - begin) * scale, 0.4),
            BAR_PX if ran else 4,
            PALETTE[cpu % len(PALETTE)] if ran else WAIT_COLOUR,
            f"{names[pid]} {did}, {format_duration(begin)} to {format_duration(end)}",
        )
