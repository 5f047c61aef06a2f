# SPDX-License-Identifier: MIT
"""Write a set of runs as one page that a person who was sent it understands.

The page is one file: style, scripts, charts and slices are inside, and a content
policy keeps it from loading or sending anything.

Must stay true: the verdict stands above every number; a run that failed is shown.
Read next: data.py for the content, pieces.py for the pieces, templates/report.html for the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UnavailableError, UsageError
from ..files import write_asked
from ..html import embedded, figure, render
from ..metrics.dictionary import DICTIONARY
from ..plots.installed import why_no_charts
from ..stats.sentences import findings, label
from . import pieces
from .by_group import group_tables
from .by_task import disturbed_text, task_tables
from .data import (
    Section,
    heat_rows,
    read_sections,
    response_rows,
    sample_rows,
    share_rows,
    time_charts,
    wakeup_rows,
)
from .failed import stories
from .what_if import what_if_section

#: Said once, below the first of its kind.
DOTS = "In these charts each dot is one run, the box holds the middle half, the diamond is the mean."
SCRIPTS = ("numbers.js", "slices.js", "gantt.js", "viewer.js")


@dataclass(frozen=True)
class Report:
    """What `write_report` wrote."""

    path: Path  #: The page.
    n_bytes: int  #: Its size.
    n_runs: int  #: Runs in it, failed ones included.
    #: SVG and PDF files beside it, where they were asked for.
    figures: list[Path] = field(default_factory=list)


@dataclass(frozen=True)
class Drawing:
    """One chart of a section: the Altair chart and its words."""

    name: str
    chart: object
    title: str
    text: str = ""
    is_wide: bool = False


def write_report(
    folder: Path,
    out: Path,
    *,
    figures: Path | None = None,
    workload: str | None = None,
    baseline: str | None = None,
    is_interactive: bool = False,
) -> Report:
    """Write the page of a folder of runs; an interactive one has their simulator in it."""
    lacking = why_no_charts()
    if figures is not None and lacking:
        raise UnavailableError(f"--figures {figures}: {lacking}")
    sections = read_sections(Path(folder), baseline=baseline)
    if workload is not None:
        known = [s.workload for s in sections]
        sections = [s for s in sections if s.workload == workload]
        if not sections:
            raise UsageError(f"--workload {workload}: not in {folder}, which has {', '.join(known)}")
    playground = None
    if is_interactive:
        from .interactive import playground_of

        playground = playground_of(sections)
    written: list[Path] = []
    bodies: list[dict[str, Any]] = []
    shown: set[str] = set()
    for number, section in enumerate(sections):
        rows, charts = time_charts(section)
        drawn = list(drawings(section, rows)) if not lacking else []
        bodies.append(_section(section, drawn, charts, f"w{number}", shown))
        if figures is not None:
            written += _save_figures(section, drawn, Path(figures))
    text = _page(sections, bodies, what_if_section(Path(folder), bodies), lacking, playground)
    write_asked("--out", Path(out), text)
    n_runs = sum(len(section.runs) for section in sections)
    return Report(Path(out), len(text.encode()), n_runs, written)


def drawings(section: Section, fairness_rows: Sequence[dict[str, Any]]) -> Iterator[Drawing]:
    """Make the charts of a section."""
    from ..plots import charts as plots

    if rows := heat_rows(section):
        yield Drawing(
            "heat",
            plots.heatmap(rows),
            "All at a glance",
            "Means. White is the best of its column; darker is more times worse.",
            is_wide=True,
        )
    for name in section.metrics:
        if rows := sample_rows(section, name):
            yield Drawing(
                f"samples-{name}",
                plots.samples(rows, name),
                plots.heading(name),
                DOTS if name == section.metrics[0] else "",
            )
    if rows := response_rows(section):
        yield Drawing(
            "response",
            plots.distribution(rows, title="response: arrival to first run"),
            "How long tasks wait for their first turn",
            "All tasks of all seeds. A curve that is higher, further left, is quicker.",
        )
    if rows := wakeup_rows(section):
        yield Drawing(
            "wakeup",
            plots.distribution(rows, title="latency: wake-up to running"),
            "How long a task that wakes up waits for the CPU",
            "All wake-ups of all seeds. Higher, further left, is quicker; 1 us or less is at the left edge.",
        )
    if rows := share_rows(section):
        yield Drawing(
            "shares",
            plots.shares(rows),
            "CPU time received against deserved",
            "Across: what its weight entitled a task to while it was runnable. Up: what it got. "
            "Above the dashed line is more than its share, below is less.",
        )
    if fairness_rows:
        yield Drawing(
            "fairness",
            plots.fairness(fairness_rows),
            "Fairness over time",
            f"With seed {section.shown_seed}: 1 is what weights entitle to; 1 divided by "
            "the number of tasks is one task getting everything.",
        )


def _save_figures(section: Section, drawn: Sequence[Drawing], folder: Path) -> list[Path]:
    """Charts of a section as files."""
    from ..plots import charts as plots

    stem = re.sub(r"[^\w.=+-]", "_", f"{section.workload}-{section.host}-{section.cpus}cpu")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [f for d in drawn for f in plots.save(d.chart, folder / f"{stem}-{d.name}")]
    except OSError as error:
        raise UsageError(f"--figures {folder}: cannot be written: {error.strerror}") from error


def _about(section: Section) -> tuple[str, str]:
    """Title and question of a section's workload, as the runs carry them."""
    first = section.runs[0]
    return first.get("title") or "", first.get("question") or ""


def _section(
    section: Section, drawn: Sequence[Drawing], charts: Sequence[dict[str, Any]], key: str, shown: set[str]
) -> dict[str, Any]:
    """One section of the page."""
    title, question = _about(section)
    every = [
        n
        for n, m in DICTIONARY.items()
        if m.level == "run" and any(n in found for found in section.intervals.values())
    ]
    seeds = len(section.seeds)
    caption = (
        "No run has given a number."
        if not every
        else f"Mean of {seeds} seeds, with its 95 % interval; a star marks the best mean."
        if seeds > 1
        else "One seed, so there are no intervals; a star marks the best."
    )
    if section.recorded is not None:
        caption += " The first row is what was recorded, and takes no part in that."
    facts, sources = pieces.provenance(section, shown)
    known = [(label(n), DICTIONARY[n]) for n in section.metrics]
    return {
        "key": key,
        "workload": section.workload,
        "title": title,
        "host": section.host,
        "cpus": section.cpus,
        "question": question,
        "setting": pieces.setting(section),
        "findings": findings(section.comparisons),
        "main": pieces.table(section, section.metrics, caption=caption),
        "glossary": [(name, m.formula, m.direction, m.reference) for name, m in known],
        "n_metrics": len(every),
        "all": pieces.table(section, every, caption=caption),
        "tasks": list(task_tables(section)),
        "groups": list(group_tables(section)),
        "figures": [_figure(each, f"{key}-{each.name}") for each in drawn],
        "charts": charts,
        "metas": [
            {k: v for k, v in chart.items() if k not in ("packed", "slices", "story")} for chart in charts
        ],
        "stories": stories(charts, key),
        "facts": facts,
        "sources": sources,
    }


def _figure(drawing: Drawing, key: str) -> str:
    """A chart with its words."""
    from ..plots import charts as plots

    svg = plots.to_svg(drawing.chart, has_variables=True)
    return figure(svg, key=key, title=drawing.title, text=drawing.text, is_wide=drawing.is_wide)


def _page(
    sections: Sequence[Section],
    bodies: Sequence[dict[str, Any]],
    asked: dict[str, Any] | None,
    lacking: str | None,
    playground: dict[str, Any] | None,
) -> str:
    """The whole page; what `schedlab whatif` was asked stands before the numbers of all runs."""
    from .. import __version__

    names = list(dict.fromkeys(s.workload for s in sections))
    policies = list(dict.fromkeys(p for s in sections for p in s.policies))
    recordings = [run for s in sections for run in [s.recorded, *s.runs] if run is not None]
    return render(
        "report.html",
        version=__version__,
        **embedded([*SCRIPTS, *(["frame.js"] if playground else [])], ["report.css"]),
        title=f"{_few(names, 'workloads')} under {_few(policies, 'policies')}",
        n_runs=sum(len(s.runs) for s in sections),
        n_good=sum(len(s.runs) - len(s.failed) for s in sections),
        failures=pieces.failures(sections),
        refused=[
            f"{c['workload']}, {c['policy_a']} against {c['policy_b']}: {c['error']}"
            for s in sections
            for c in s.comparisons
            if c["error"]
        ],
        warnings=pieces.warnings(sections),
        disturbed=list(dict.fromkeys(filter(None, map(disturbed_text, recordings)))),
        notes=list(dict.fromkeys(note for s in sections for note in s.notes)),
        asked=asked,
        sections=bodies,
        lacking=lacking,
        playground=playground,
    )


def _few(names: Sequence[str], word: str) -> str:
    """One or two by name, many by number."""
    return " and ".join(names) if len(names) <= 2 else f"{len(names)} {word}"
