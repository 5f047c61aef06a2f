# SPDX-License-Identifier: MIT
"""Tables and charts of a report, redrawn beside ours.

        table    a line per row and source, the report's above ours, so that each
                 number stands over the one that it is compared with
        charts   one per source, of the same shape

Must stay true: a published number is drawn as printed; each of ours links to a run;
every sample is drawn, the report's too where it prints them.
Read next: charts.py, which draws; templates/tables.html, which asks for this.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from altair.utils.schemapi import debug_mode
from markupsafe import Markup

from schedlab import html as page
from schedlab.errors import SpecError, SpecFault
from schedlab.plots import charts
from schedlab.stats.inference import Interval, mean_interval

from . import charts as draw
from .audit import mean_groups, samples_behind
from .claims import measure_on
from .formula import Measure, MissingError
from .published import Formula
from .reproduction import Reproduction
from .spec import Redrawn, fill
from .text import number_text

#: So many charts find room beside a table of as many columns.
BESIDE_MAX = 3
#: The shapes of `plots.charts.SHAPES` as signs of a text.
SIGNS = "\u25cf\u25a0\u25b2\u25c6\u271a\u25bc\u25b6\u25c0"


def redrawn_cells(made: Reproduction, redrawn: Redrawn) -> Iterator[dict[str, Any]]:
    """Compute a table of the report: its own cells, and ours."""
    groups = mean_groups(made.experiment.folder)
    for row in redrawn.rows:
        for column in redrawn.columns:
            place = {"row": row, "column": column}
            if redrawn.published:
                text = fill(redrawn.published, row, column)
                try:
                    value = Formula(text).value(made.tables)
                    yield place | {
                        "on": "",
                        "published": value,
                        "values": samples_behind(groups, made.tables, text),
                    }
                except ValueError as error:
                    # A report's table may have empty cells; a wrong name is nobody's empty cell.
                    if "is in no row" not in str(error):
                        fault = SpecFault(str(made.experiment.folder), None, redrawn.title, str(error))
                        raise SpecError([fault]) from error
            for on in redrawn.on:
                if on not in made.samples.done:
                    continue
                measure = Measure(fill(redrawn.ours, row, column), sets=tuple(made.experiment.runs))
                try:
                    sample = measure_on(measure, on, made.samples)
                except MissingError as error:
                    yield place | {"on": on, "reason": str(error)}
                    continue
                yield place | {
                    "on": on,
                    "ours": mean_interval(sample.values, minimum=sample.minimum),
                    "sample": sample,
                    "values": list(sample.values),
                }


class Charts(NamedTuple):
    """A chart per source, all of one shape; the legend's names with colour and sign, in the order in each group."""

    figures: Sequence[Markup]
    axis_words: Sequence[str]
    legend: Sequence[tuple[str, str, str]] = ()
    legend_is: str = ""
    has_shapes: bool = False


class Drawn(NamedTuple):
    """What a template needs of a table or of boxes; `lacks` is None where there is anything to show.

    `sources` are names and titles of what its numbers come from, the report first; `by_place` cells
    by row, column and source; `measured` those that are ours.
    """

    lacks: Sequence[str] | None
    charts: Charts | None = None
    sources: Mapping[str, str] = MappingProxyType({})
    by_place: Mapping[tuple[str, str, str], dict[str, Any]] = MappingProxyType({})
    measured: Sequence[dict[str, Any]] = ()
    lacking: Sequence[str] = ()
    is_narrow: bool = False


def drawn_of(made: Reproduction, redrawn: Redrawn, key: str) -> Drawn:
    """A table or chart of the report, with ours; `key` is its own in the page."""
    # Hundreds of charts of two shapes, which tests draw: to check each anew takes longer than to draw it.
    with debug_mode(False):
        return (_table if redrawn.kind == "table" else _boxes)(made, redrawn, key)


def link(made: Reproduction, folder: str) -> str:
    """Where a run's own file is, from where the page is."""
    return os.path.relpath(os.path.join(folder, "run.json"), made.folder)


def _sources(made: Reproduction, redrawn: Redrawn) -> dict[str, str]:
    """What a table's numbers come from, the report first: names and titles.

    Without a set that could not be run at all, of which the top of the page speaks.
    """
    ours = {
        on: made.experiment.runs[on].title
        for on in redrawn.on
        if on in made.samples.done and not made.samples.done[on].problem
    }
    return ({"": draw.PUBLISHED} if redrawn.published else {}) | ours


# ---- tables ------------------------------------------------------------------


def _table(made: Reproduction, redrawn: Redrawn, key: str) -> Drawn:
    """A table of the report, and its charts."""
    sources = _sources(made, redrawn)
    if not sources:
        return Drawn([made.experiment.runs[on].title for on in redrawn.on])
    cells = list(redrawn_cells(made, redrawn))
    shown = [cell for cell in cells if cell["on"] in sources]
    lacking = dict.fromkeys(f"{sources[cell['on']]}: {cell['reason']}" for cell in shown if "reason" in cell)
    return Drawn(
        None,
        _charts(made, redrawn, cells, sources, key),
        sources,
        {(cell["row"], cell["column"], cell["on"]): cell for cell in cells},
        [cell for cell in shown if "sample" in cell],
        list(lacking),
        max(len(sources), len(redrawn.columns)) <= BESIDE_MAX,
    )


def is_wide(ours: Interval) -> bool:
    """Whether an interval can be told from its mean."""
    return len({*map(number_text, (ours.low, ours.estimate, ours.high))}) > 1 and ours.method != "single"


# ---- charts ------------------------------------------------------------------


def _charts(
    made: Reproduction, redrawn: Redrawn, cells: list[dict[str, Any]], sources: dict[str, str], key: str
) -> Charts | None:
    """A chart per source, all of one shape."""
    is_turned = _is_turned(made, redrawn)
    drawn = {
        name: [_mark(cell, is_turned) for cell in cells if cell["on"] == name and "reason" not in cell]
        for name in sources
    }
    drawn = {name: marks for name, marks in drawn.items() if marks}
    if not drawn:
        return None
    series, groups = (redrawn.columns, redrawn.rows) if is_turned else (redrawn.rows, redrawn.columns)
    series_are, groups_are = (
        (redrawn.columns_are, redrawn.rows_are) if is_turned else (redrawn.rows_are, redrawn.columns_are)
    )
    values = {
        name: [
            value
            for mark in marks
            for value in (mark["value"], mark["low"], mark["high"], *mark["values"])
            if value is not None
        ]
        for name, marks in drawn.items()
    }
    axes = draw.axes(values, is_log=redrawn.is_log, is_shared=redrawn.is_shared)
    figures = []
    for place, (name, marks) in enumerate(drawn.items()):
        chart = draw.panel(
            marks,
            axes[name],
            groups=groups,
            series=series,
            groups_are=groups_are,
            unit=redrawn.unit.partition(";")[0],
        )
        words = [f"{mark['series']} {mark['group']}: {number_text(mark['value'])}" for mark in marks]
        label = f"{redrawn.title}, {sources[name]}. {redrawn.unit}. {'; '.join(words)}."
        figures.append(
            page.figure(
                charts.to_svg(chart, has_variables=True),
                key=f"{key}-{place}",
                title=sources[name],
                label=label,
            )
        )
    legend = [
        (name, f"var(--s{place % len(charts.PALETTE)})", SIGNS[place % len(SIGNS)])
        for place, name in enumerate(series)
    ]
    has_shapes = next(iter(axes.values())).is_log
    return Charts(figures, _axis_words(axes, values), legend, series_are, has_shapes)


def _is_turned(made: Reproduction, redrawn: Redrawn) -> bool:
    """Whether the columns of a table are what its charts compare, and not its rows.

    Schedulers are compared, if they are any; else what is no number, as numbers make an axis.
    """
    policies = {name for runs in made.experiment.runs.values() for name in runs.policies}
    if set(redrawn.rows) <= policies:
        return False
    return not all(map(str.isdigit, redrawn.columns)) or all(map(str.isdigit, redrawn.rows))


def _mark(cell: dict[str, Any], is_turned: bool) -> dict[str, Any]:
    """A cell as `charts.panel` draws it."""
    series, group = (cell["column"], cell["row"]) if is_turned else (cell["row"], cell["column"])
    place = {"series": series, "group": group, "values": cell["values"]}
    if "published" in cell:
        return place | {"value": cell["published"].middle, "low": None, "high": None}
    ours = cell["ours"]
    is_wide = ours.method not in ("single", "deterministic")
    return place | {
        "value": ours.estimate,
        "low": ours.low if is_wide else None,
        "high": ours.high if is_wide else None,
    }


def _axis_words(axes: dict[str, draw.Axis], values: dict[str, list[float]]) -> list[str]:
    """What a reader must know of the axes."""
    words = []
    if len(set(axes.values())) > 1:
        words.append("Each chart has its own axis: compare shapes.")
    if any(axis.is_log for axis in axes.values()):
        words.append("The axis is logarithmic.")
        if any(value <= 0 for mine in values.values() for value in mine):
            words.append("What is 0 has no place on it.")
    return words


def _boxes(made: Reproduction, redrawn: Redrawn, key: str) -> Drawn:
    """Distributions over all tasks of all seeds."""
    import numpy as np

    found: dict[str, list[dict[str, Any]]] = {}
    for on in redrawn.on:
        for row in redrawn.rows if on in made.samples.done else ():
            measure = Measure(fill(redrawn.ours, row, ""), sets=tuple(made.experiment.runs))
            workload, policy, column, *pattern = measure.cells[0][1]
            try:
                values = made.samples.all_values(on, workload, policy, column, pattern[0] if pattern else "*")
            except MissingError:
                continue
            ends = dict(
                zip(
                    ("low", "q1", "median", "q3", "high"),
                    np.quantile(values, (0, 0.25, 0.5, 0.75, 1)) / 1e6,
                    strict=True,
                )
            )
            found.setdefault(on, []).append({"row": row, "nr": len(values)} | ends)
    if not found:
        return Drawn([])
    axes = draw.axes(
        {on: [row["high"] for row in rows] for on, rows in found.items()},
        is_log=False,
        is_shared=redrawn.is_shared,
    )
    figures = []
    for place, (on, rows) in enumerate(found.items()):
        title = made.experiment.runs[on].title
        words = [
            f"{row['row']}: median {number_text(row['median'])}, middle half {number_text(row['q1'])} to "
            f"{number_text(row['q3'])}, extremes {number_text(row['low'])} and {number_text(row['high'])}"
            for row in rows
        ]
        svg = charts.to_svg(draw.boxes(rows, axes[on], names=redrawn.rows, unit="ms"), has_variables=True)
        figures.append(
            page.figure(
                svg,
                key=f"{key}-{place}",
                title=title,
                label=f"{redrawn.title}, {title}, in ms. {'; '.join(words)}.",
            )
        )
    return Drawn(None, Charts(figures, _axis_words(axes, {})))
