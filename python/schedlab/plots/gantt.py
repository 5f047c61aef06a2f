# SPDX-License-Identifier: MIT
"""Who had the CPU when: a chart for the terminal, and one as SVG.

Each task is a row, time goes to the right. A cell or rectangle says what the task
did then: it ran, it waited for a CPU, or it wanted none.

Must stay true: in the terminal a task that ran at all within a cell is shown to
have run; nothing shorter than a cell disappears.
Read next: metrics/timeline.py, where the intervals come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import UsageError
from ..metrics.timeline import Timeline
from ..records.file import Kind, Records
from ..stats.sentences import show_time
from ..units import format_duration

RAN, WAITED = 1, 0
MARK_FULL, MARK_PART, MARK_WAIT = "█", "▌", "·"
#: Colours that are told apart by people who see few, after Okabe and Ito 2008.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")
WAIT_COLOUR = "#dddddd"
ROW_PX, BAR_PX, LABEL_PX, AXIS_PX = 22, 16, 130, 28
TASKS_MAX = 500


@dataclass(frozen=True)
class Intervals:
    """What tasks did, one entry per stretch of time, by task and then by time."""

    pid: np.ndarray  #: int64, shape (n,): whose.
    #: `begin_ns`, `end_ns`: int64, shape (n,): from when to when, cut to the window, in nanoseconds.
    begin_ns: np.ndarray
    end_ns: np.ndarray
    #: int8, shape (n,): `RAN` or `WAITED`; stretches in which a task wanted no CPU are left out.
    state: np.ndarray
    cpu: np.ndarray  #: int64, shape (n,): where it ran.


def intervals(records: Records, *, begin_ns: int = 0, end_ns: int | None = None) -> Intervals:
    """Cut a window out of a run."""
    end_ns = records.end_ns if end_ns is None else min(end_ns, records.end_ns)
    if not 0 <= begin_ns < end_ns:
        raise UsageError(
            f"the window from {begin_ns} ns to {end_ns} ns is empty; the run goes from 0 to {records.end_ns} ns"
        )
    timeline = Timeline(records)
    tasks = timeline.by_task
    begin = tasks.t_ns
    end = begin + timeline.duration_ns
    ran = tasks.kind == Kind.RUN
    # A run of no length may stand on the very edge; a wait of none says nothing.
    inside = (begin <= end_ns) & (end >= begin_ns)
    shown = np.minimum(end, end_ns) > np.maximum(begin, begin_ns)
    chosen = np.flatnonzero(inside & (ran | (timeline.is_runnable_after & shown)))
    return Intervals(
        pid=tasks.task[chosen].astype(np.int64),
        begin_ns=np.maximum(begin[chosen], begin_ns),
        end_ns=np.minimum(end[chosen], end_ns),
        state=np.where(ran[chosen], RAN, WAITED).astype(np.int8),
        cpu=tasks.cpu[chosen].astype(np.int64),
    )


def _rows(found: Intervals, n_max: int) -> tuple[list[int], int]:
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
    found = intervals(records, begin_ns=begin_ns, end_ns=end_ns)
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


def _cells(found: Intervals, mine: np.ndarray, begin_ns: int, cell_ns: float, n_cells: int) -> str:
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
) -> str:
    """Chart as SVG, for a paper or a page."""
    from ..html import render

    found = intervals(records, begin_ns=begin_ns, end_ns=end_ns)
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
    return render(
        "gantt.svg",
        width=width_px,
        height=top_px + ROW_PX * len(pids) + AXIS_PX,
        left=LABEL_PX,
        top=top_px,
        row_px=ROW_PX,
        bar_px=BAR_PX,
        title=title,
        labels=list(names.values()),
        bars=_bars(found, names, begin_ns, scale, top_px),
        ticks=[(LABEL_PX + (t_ns - begin_ns) * scale, format_duration(t_ns)) for t_ns in times],
    )


def _bars(
    found: Intervals, names: Mapping[int, str], begin_ns: int, scale: float, top_px: int
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
