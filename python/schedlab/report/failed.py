# SPDX-License-Identifier: MIT
"""What a run that failed shows: its chart, and why a task waited in it.

A failed run has no numbers, and its records end where it failed.
Read next: data.py, whose charts these join; templates/report.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import SchedlabError
from ..metrics.timeline import Timeline
from ..runs.folders import program_of_run, records_until_failure
from ..stats.explain import longest_wait_as_lines
from ..stats.sentences import show_time
from .over_time import PAGE_SLICES_MAX, SLICES_MAX, chart_of, window_of

#: Failed runs of a section that are drawn: one of a policy, and no more of them.
SHOWN_MAX = 3
#: What is shown of the time before a failure, where a task's wait is longer.
WINDOW_NS = 100_000_000


def first_failed(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first failed run of each policy."""
    first: dict[str, dict[str, Any]] = {}
    for run in runs:
        first.setdefault(run["policy"], run)
    return [*first.values()][:SHOWN_MAX]


def failed_charts(folders: list[tuple[Path | None, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Charts as those of good runs, each with the `story` that is told of it; none where there are no records."""
    for folder, run in folders:
        try:
            if folder is None or not (folder / "records.slr").is_file():
                continue
            records, program = records_until_failure(folder), program_of_run(folder)
            n_max = min(SLICES_MAX, PAGE_SLICES_MAX // SHOWN_MAX)
            chart = chart_of(Timeline(records), program.names if program else {}, n_max=n_max)
            stretch, lines = longest_wait_as_lines(records, program, run.get("error") or "")
        except (OSError, SchedlabError):
            continue
        if not chart["n_slices"]:
            continue
        end_ns = records.end_ns
        view = (max(0, end_ns - WINDOW_NS), end_ns)
        if stretch is not None and stretch.end_ns - stretch.begin_ns <= WINDOW_NS:
            view = window_of(stretch.begin_ns, stretch.end_ns)
        story = {"lines": lines, "pid": stretch.task if stretch else None, "view": view}
        story["at"] = max(view[0], stretch.begin_ns) if stretch else view[0]
        yield {"policy": f"{run['policy']}, failed", "seed": run["seed"]} | chart | {"story": story}


def stories(charts: Sequence[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """What is told of failed runs, and where in the viewer with this key that is seen."""
    told = []
    for place, chart in enumerate(charts):
        story = chart.get("story")
        if story is None:
            continue
        low, high = story["view"]
        told.append({
            "title": f"{chart['policy']} with seed {chart['seed']}", "lines": story["lines"],
            "button": f"{show_time(low)} to {show_time(high)}",
            "moment": {"viewer": f"{key}-gantt", "charts": [place, ""], "view": [low, high], "side": 0,
                       "pid": story["pid"], "at": story["at"]},
        })  # fmt: skip
    return told
