# SPDX-License-Identifier: MIT
"""Tables and charts of a report, redrawn beside ours.

        table    a line per row and source, the report's above ours, so that each
                 number stands over the one that it is compared with
        charts   one per source, of the same shape

Must stay true: a published number is drawn as printed; each of ours links to a run;
every sample is drawn, the report's too where it prints them.
Read next: charts.py, which draws; page.py, the page.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from altair.utils.schemapi import debug_mode

from schedlab import html as page
from schedlab.errors import SpecError, SpecFault
from schedlab.plots import charts
from schedlab.stats.inference import mean_interval

from . import charts as draw
from .audit import mean_groups, samples_behind
from .claims import measure_on
from .formula import Measure, MissingError, Sample
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


def tables_section(made: Reproduction) -> str:
    """All tables and charts of the report, with ours."""
    parts, before = [], None
    for number, redrawn in enumerate(made.experiment.redrawn):
        # Hundreds of charts of two shapes, which tests draw: to check each anew takes longer than to draw it.
        with debug_mode(False):
            body = (_table if redrawn.kind == "table" else _boxes)(made, redrawn, f"{number}")
        if redrawn.where != before:
            parts.append(f"<h3>{escape(redrawn.where[:1].upper() + redrawn.where[1:])}</h3>")
        before = redrawn.where
        note = f'<p class="soft">{page.prose(redrawn.note)}</p>' if redrawn.note else ""
        unit = f' <span class="soft small">({escape(redrawn.unit)})</span>' if redrawn.unit else ""
        title = f"{escape(redrawn.title)}{unit}"
        if redrawn.is_folded:
            parts.append(
                f'<details class="redrawn" id="table-{number}"><summary>{title}</summary>{note}{body}</details>'
            )
        else:
            parts.append(f'<div class="redrawn" id="table-{number}"><h4>{title}</h4>{note}{body}</div>')
    if not parts:
        return ""
    return f"""<section id="tables">
<h2>Its tables and charts, beside ours</h2>
<p>In a table each number of the report stands over ours: the mean of all runs, with its 95 % interval below, linked to
the first of these runs; all of them, each with its own number, unfold below a table. In a chart every dot is a run, a line is the interval. Where the numbers lie near each other
all charts of a row have one axis; else each has its own, and shapes are to be compared.</p>
{"".join(parts)}</section>"""


def link(made: Reproduction, folder: str) -> str:
    """Where a run's own file is, from where the page is."""
    return escape(os.path.relpath(os.path.join(folder, "run.json"), made.folder), quote=True)


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


def _table(made: Reproduction, redrawn: Redrawn, key: str) -> str:
    """A table of the report, and its charts."""
    cells = list(redrawn_cells(made, redrawn))
    by_place = {(cell["row"], cell["column"], cell["on"]): cell for cell in cells}
    sources = _sources(made, redrawn)
    if not sources:
        return f'<p class="soft">Not run this time: needs {escape(", ".join(made.experiment.runs[on].title for on in redrawn.on))}.</p>'
    columns = "".join(f'<th scope="col">{escape(column)}</th>' for column in redrawn.columns)
    over = (
        (
            f'<tr><th></th><th></th><th scope="colgroup" class="group" colspan="{len(redrawn.columns)}">'
            f"{escape(redrawn.columns_are)}</th></tr>"
        )
        if redrawn.columns_are
        else ""
    )
    bodies = []
    for row in redrawn.rows:
        lines = []
        for place, (source, title) in enumerate(sources.items()):
            name = f'<th scope="rowgroup" rowspan="{len(sources)}">{escape(row)}</th>' if place == 0 else ""
            values = "".join(_cell(made, by_place.get((row, column, source))) for column in redrawn.columns)
            lines.append(
                f'<tr{"" if source else " class=report"}>{name}<th scope="row">{escape(title)}</th>{values}</tr>'
            )
        bodies.append(f"<tbody>{''.join(lines)}</tbody>")
    reasons = list(
        dict.fromkeys(
            f"{sources[cell['on']]}: {cell['reason']}"
            for cell in cells
            if "reason" in cell and cell["on"] in sources
        )
    )
    missing = "".join(f'<p class="small soft">No number on {escape(reason)}.</p>' for reason in reasons)
    # Few charts stand beside a narrow table, else they stand below it.
    beside = "beside" if max(len(sources), len(redrawn.columns)) <= BESIDE_MAX else "beside below"
    return (
        f'<div class="{beside}"><div class="numbers"><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(redrawn.title)}"><table><thead>{over}<tr><th scope="col">{escape(redrawn.rows_are)}</th>'
        f'<th scope="col">from</th>{columns}</tr></thead>{"".join(bodies)}</table></div>{missing}{_every_run(made, cells, sources)}</div>'
        f"{_charts(made, redrawn, cells, sources, key)}</div>"
    )


def _every_run(made: Reproduction, cells: list[dict[str, Any]], sources: dict[str, str]) -> str:
    """The runs behind our means, each with its number and its link, on demand."""
    lines = [
        f"<li>{escape(cell['row'])}, {escape(cell['column'])}, {escape(sources[cell['on']])}: "
        f"{values_text(made, cell['sample'])}</li>"
        for cell in cells
        if "sample" in cell and cell["on"] in sources
    ]
    return (
        f'<details class="small runs"><summary>Every run of ours, seed 1 first</summary><ul>{"".join(lines)}</ul></details>'
        if lines
        else ""
    )


def values_text(made: Reproduction, sample: Sample) -> str:
    """Write down a sample: the number of each seed, linked to its run, or to all runs that it compares."""
    digits = 4 if len({*map(number_text, sample.values)}) == len({*sample.values}) else 7
    parts = []
    for seed, value, runs in zip(sample.seeds, sample.values, sample.runs, strict=True):
        links = " ".join(f'<a href="{link(made, run)}">{number}</a>' for number, run in enumerate(runs, 1))
        parts.append(
            f'<a href="{link(made, runs[0])}" title="seed {seed}">{number_text(value, digits)}</a>'
            + (f' <span class="soft">(runs {links})</span>' if len(runs) > 1 else "")
        )
    return ", ".join(parts)


def _cell(made: Reproduction, cell: dict[str, Any] | None) -> str:
    """A cell of a redrawn table."""
    if cell is None:
        return "<td></td>"
    if "published" in cell:
        return f"<td>{cell['published'].middle:,.6g}</td>"
    if "reason" in cell:
        return "<td>-</td>"
    ours = cell["ours"]
    between = ""
    if len({*map(number_text, (ours.low, ours.estimate, ours.high))}) > 1 and ours.method != "single":
        between = f'<span class="between">{number_text(ours.low)} to {number_text(ours.high)}</span>'
    return f'<td><a href="{link(made, cell["sample"].folders[0])}">{number_text(ours.estimate)}</a>{between}</td>'


# ---- charts ------------------------------------------------------------------


def _charts(
    made: Reproduction, redrawn: Redrawn, cells: list[dict[str, Any]], sources: dict[str, str], key: str
) -> str:
    """A chart per source, all of one shape."""
    is_turned = _is_turned(made, redrawn)
    drawn = {
        name: [_mark(cell, is_turned) for cell in cells if cell["on"] == name and "reason" not in cell]
        for name in sources
    }
    drawn = {name: marks for name, marks in drawn.items() if marks}
    if not drawn:
        return ""
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
    return (
        f'<div class="drawings">{_legend(series, series_are, next(iter(axes.values())).is_log)}<div class="panels">{"".join(figures)}</div>'
        f"{_axis_words(axes, values)}</div>"
    )


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


def _legend(series: Sequence[str], series_are: str, has_shapes: bool) -> str:
    """Colours and shapes of the charts, in the order in which they stand in each group."""
    if len(series) < 2:
        return ""
    items = ""
    for place, name in enumerate(series):
        colour = f"var(--s{place % len(charts.PALETTE)})"
        sign = (
            f'<span class="shape" style="color:{colour}">{SIGNS[place % len(SIGNS)]}</span>'
            if has_shapes
            else f'<span class="swatch" style="background:{colour}"></span>'
        )
        items += f"<li>{sign}{escape(name)}</li>"
    what = f"<li>{escape(series_are)}, in this order:</li>" if series_are else "<li>in this order:</li>"
    return f'<ul class="legend">{what}{items}</ul>'


def _axis_words(axes: dict[str, draw.Axis], values: dict[str, list[float]]) -> str:
    """What a reader must know of the axes."""
    words = []
    if len(set(axes.values())) > 1:
        words.append("Each chart has its own axis: compare shapes.")
    if any(axis.is_log for axis in axes.values()):
        words.append("The axis is logarithmic.")
        if any(value <= 0 for mine in values.values() for value in mine):
            words.append("What is 0 has no place on it.")
    return f'<p class="small soft">{" ".join(words)}</p>' if words else ""


def _boxes(made: Reproduction, redrawn: Redrawn, key: str) -> str:
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
        return '<p class="soft">Not run this time.</p>'
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
    return (
        '<p class="small soft">Boxes hold the middle half, whiskers reach the extremes, the tick is the median.'
        f'</p>{_axis_words(axes, {})}<div class="panels">{"".join(figures)}</div>'
    )
