# SPDX-License-Identifier: MIT
"""Charts of a report beside ours: bars per published table, boxes per distribution.

Sources stand below each other, the report's own first, in one scale per source: its
cycles are not our seconds, and what is compared is the shape.

Must stay true: nothing is drawn for the report that it did not publish.
Read next: reproduce_page.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from .plots import PALETTE, TEXT, _finished

#: What the first source of a chart is called.
PUBLISHED = "report"
CELL_PX, BAR_PX = 190, 15


def bars(rows: Sequence[dict], *, is_log: bool = False, is_shared: bool = False):
    """Draw published and measured values, a small chart per source and column.

    Parameters
    ----------
    rows : sequence of dict
        `source`, `column`, `row`, `value`, and `low` and `high`, which may be None.
    is_log : bool, default False
        Whether axes are logarithmic.
    is_shared : bool, default False
        Whether the columns of a source have one scale.

    Returns
    -------
    altair.Chart
        Bars with their intervals.
    """
    names = list(dict.fromkeys(row["row"] for row in rows))
    columns = list(dict.fromkeys(row["column"] for row in rows))
    by_source: dict[str, list[dict]] = {}
    for row in rows:
        by_source.setdefault(row["source"], []).append(row)
    lines = []
    for number, (source, mine) in enumerate(by_source.items()):
        # The report's marks are grey and ours are blue: no colour means a policy.
        colour = PALETTE[7] if source == PUBLISHED else PALETTE[0]
        small = []
        for place, column in enumerate(columns):
            chart = _bar_cell([row for row in mine if row["column"] == column], names, colour,
                              is_first=place == 0, is_log=is_log)  # fmt: skip
            small.append(chart.properties(title=column) if number == 0 and column else chart)
        line = alt.hconcat(*small, spacing=14, title=alt.Title(source, anchor="start", fontSize=12))
        lines.append(line.resolve_scale(x="shared") if is_shared else line)
    return _finished(alt.vconcat(*lines, spacing=12)).configure_title(color=TEXT, fontSize=11)


def _bar_cell(rows: list[dict], names: list[str], colour: str, *, is_first: bool, is_log: bool):
    """One small chart: a column of a table as one source has it."""
    scale = alt.Scale(type="log") if is_log else alt.Scale(zero=True, nice=True)
    axis = alt.Axis(tickCount=3, labelExpr="format(datum.value, '.3~r')", labelOverlap=True)
    x = alt.X("value:Q", title=None, scale=scale, axis=axis)
    y = alt.Y("row:N", sort=names, title=None, scale=alt.Scale(domain=names),
              axis=alt.Axis(labels=is_first, ticks=is_first))  # fmt: skip
    base = alt.Chart(alt.Data(values=rows), width=CELL_PX, height=alt.Step(BAR_PX)).encode(y=y)
    mark = base.mark_point(filled=True, size=60, color=colour) if is_log else base.mark_bar(color=colour)
    layers = [mark.encode(x=x)]
    if any(row["low"] is not None for row in rows):
        layers.append(base.mark_rule(color=TEXT, strokeWidth=2, aria=False).encode(x="low:Q", x2="high:Q"))
    return alt.layer(*layers)


def boxes(rows: Sequence[dict], *, unit: str):
    """Draw distributions as boxes, a chart per source.

    Parameters
    ----------
    rows : sequence of dict
        `source`, `row`, and `low`, `q1`, `median`, `q3`, `high`.
    unit : str
        Of the axis.

    Returns
    -------
    altair.Chart
        Boxes span the quartiles, whiskers the extremes.
    """
    names = list(dict.fromkeys(row["row"] for row in rows))
    lines = []
    for source in dict.fromkeys(row["source"] for row in rows):
        data = alt.Data(values=[row for row in rows if row["source"] == source])
        base = alt.Chart(data, width=430, height=alt.Step(24)).encode(
            y=alt.Y("row:N", sort=names, title=None)
        )
        whisker = base.mark_rule(color=PALETTE[7], aria=False).encode(x=alt.X("low:Q", title=unit), x2="high:Q")
        box = base.mark_bar(size=14, color=PALETTE[0], opacity=0.55).encode(x=alt.X("q1:Q"), x2="q3:Q")
        median = base.mark_tick(color=TEXT, thickness=2, size=14, aria=False).encode(x="median:Q")
        lines.append((whisker + box + median).properties(title=alt.Title(source, anchor="start")))
    return _finished(alt.vconcat(*lines, spacing=14)).configure_title(color=TEXT, fontSize=12)
