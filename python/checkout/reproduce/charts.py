# SPDX-License-Identifier: MIT
"""Charts of a report beside ours: columns per published table, boxes per distribution.

A small chart per source, the report's own first, all of one shape: the same groups
and the same schedulers in the same places, so that they can be compared at a glance.

Must stay true: nothing is drawn for the report that it did not publish; every
sample is drawn; a scheduler has its place and its shape, not its colour alone.
Read next: tables.py.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from schedlab.plots.charts import PALETTE, SHAPES, TEXT, _finished

#: What the first source of a chart is called.
PUBLISHED = "the report"
BAR_PX, HEIGHT_PX, WIDTH_PX, BOX_PX = 14, 150, 165, 24
#: Width of the axis of the one picture at the top of a page, so that it fits a telephone.
PICTURE_PX = 190
#: Room for a letter of a label; the fonts of readers differ, and a label that is too long would be cut off.
LETTER_PX = 7
#: What is wider lies down, so that it fits a telephone.
SIZE_PX_MAX = 280
TITLE_LETTERS = 28
#: Sources whose maximum values lie within this factor are drawn on one axis.
NEAR = 4
#: From this ratio on a table that asks for a logarithmic axis gets one.
LOG_RATIO = 20


@dataclass(frozen=True)
class Axis:
    """The axis of values that the charts of a table share, or one of them has."""

    #: `low`, `high`: Its ends.
    low: float
    high: float
    ticks: tuple[float, ...] = ()  #: Where it has ticks, on a logarithmic axis.
    is_log: bool = False  #: Whether it is logarithmic; what is 0 or less has no place there.


def axes(values: Mapping[str, Sequence[float]], *, is_log: bool, is_shared: bool) -> dict[str, Axis]:
    """Choose the axis of each source.

    >>> axes({"a": [1, 3], "b": [2]}, is_log=False, is_shared=False)["b"].high
    3
    """
    everything = [value for mine in values.values() for value in mine]
    positive = [value for value in everything if value > 0]
    if is_log and positive and max(positive) >= LOG_RATIO * min(positive):
        return dict.fromkeys(values, _log_axis(positive))
    ends = {name: (min(0, *mine), max(0, *mine)) for name, mine in values.items() if mine}
    tops = [max(-low, high) for low, high in ends.values() if low or high]
    if is_shared or not tops or max(tops) <= NEAR * min(tops):
        both = Axis(min(0, *everything), max(0, *everything) or 1)
        return dict.fromkeys(values, both)
    return {name: Axis(low, high or 1) for name, (low, high) in ends.items()}


def _log_axis(values: Sequence[float]) -> Axis:
    """From a little below the minimum to a little above the maximum."""
    low, high = min(values), max(values)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if len(powers) > 3 else (1, 3)
    ticks = [m * 10.0**power for power in powers for m in steps]
    return Axis(low / 1.4, high * 1.4, tuple(t for t in ticks if low / 1.4 <= t <= high * 1.4), is_log=True)


def panel(
    cells: Sequence[dict[str, Any]],
    axis: Axis,
    *,
    groups: Sequence[str],
    series: Sequence[str],
    groups_are: str,
    unit: str,
    width_px: int = WIDTH_PX,
) -> Any:
    """Draw the values of one source."""
    size = max(120, len(groups) * (len(series) * BAR_PX + 10))
    is_flat = max(map(len, groups)) > 8 or size > SIZE_PX_MAX
    place, offset, length, end = ("y", "yOffset", "x", "x2") if is_flat else ("x", "xOffset", "y", "y2")
    kind: Any = "log" if axis.is_log else "linear"
    scale = alt.Scale(type=kind, domain=[axis.low, axis.high], nice=not axis.is_log, zero=not axis.is_log)
    ticks: dict[str, Any] = {"values": list(axis.ticks)} if axis.ticks else {"tickCount": 4}
    look = alt.Axis(labelExpr="format(datum.value, '.3~r')", labelOverlap=True, **ticks)
    channel = {"x": alt.X, "y": alt.Y}
    shifted = {"xOffset": alt.XOffset, "yOffset": alt.YOffset}[offset]
    where = {
        place: _groups(channel[place], groups, groups_are, is_flat=is_flat),
        offset: shifted("series:N", sort=list(series), scale=alt.Scale(domain=list(series))),
    }
    data = [cell for cell in cells if cell["value"] > 0 or not axis.is_log]
    width, height = (width_px, size) if is_flat else (max(size, 150), HEIGHT_PX)
    base = alt.Chart(width=width, height=height)
    # A title longer than its axis is cut; the heading has the whole of it, too.
    value = channel[length](
        "value:Q", title=textwrap.wrap(unit, TITLE_LETTERS) or None, scale=scale, axis=look
    )
    colours = alt.Color(
        "series:N",
        scale=alt.Scale(domain=list(series), range=[_colour(i) for i in range(len(series))]),
        legend=None,
    )
    if axis.is_log:
        shapes = alt.Scale(domain=list(series), range=[SHAPES[i % len(SHAPES)] for i in range(len(series))])
        mark = base.mark_point(filled=True, size=55, opacity=1).encode(
            color=colours, shape=alt.Shape("series:N", scale=shapes, legend=None), **where, **{length: value}
        )
    else:
        mark = base.mark_bar().encode(color=colours, **where, **{length: value})
    layers = [mark]
    if any(cell["low"] is not None for cell in data):
        layers.append(
            base.mark_rule(color=TEXT, strokeWidth=1.5, aria=False).encode(
                **where, **{length: channel[length]("low:Q"), end: "high:Q"}
            )
        )
    dots = [
        {"group": cell["group"], "series": cell["series"], "value": each}
        for cell in data
        for each in dict.fromkeys(cell["values"])
        if each > 0 or not axis.is_log
    ]
    if dots:
        layers.append(
            base.mark_circle(color=TEXT, size=9, opacity=0.7, aria=False).encode(
                **where, **{length: channel[length]("value:Q")}
            )
        )
    chart = _finished(alt.layer(*layers))
    # Each step of Altair copies a chart with all its data, so the data come last.
    chart.data = alt.Data(values=[{k: v for k, v in cell.items() if k != "values"} for cell in data])
    if dots:
        chart.layer[-1].data = alt.Data(values=dots)
    return chart


def _groups(channel: Any, groups: Sequence[str], title: str, *, is_flat: bool) -> Any:
    """Places of the groups on their axis; names beside bars have room for the longest."""
    room: dict[str, Any] = {"minExtent": LETTER_PX * max(map(len, groups))} if is_flat else {}
    return channel(
        "group:N",
        sort=list(groups),
        title=title or None,
        scale=alt.Scale(domain=list(groups), paddingInner=0.2, paddingOuter=0.1),
        axis=alt.Axis(labelAngle=0, grid=False, labelLimit=150, **room),
    )


def _colour(index: int) -> str:
    """Of a series; report.css has the same colours as --s0, --s1 ..."""
    return PALETTE[index % len(PALETTE)]


def boxes(rows: Sequence[dict[str, Any]], axis: Axis, *, names: Sequence[str], unit: str) -> Any:
    """Draw the distributions of one source as boxes."""
    scale = alt.Scale(domain=[axis.low, axis.high], nice=True)
    base = alt.Chart(alt.Data(values=list(rows)), width=WIDTH_PX, height=alt.Step(BOX_PX)).encode(
        y=alt.Y("row:N", sort=list(names), title=None, scale=alt.Scale(domain=list(names)))
    )
    x = alt.X("low:Q", title=unit, scale=scale, axis=alt.Axis(tickCount=5, labelOverlap=True))
    whisker = base.mark_rule(color=PALETTE[7], aria=False).encode(x=x, x2="high:Q")
    box = base.mark_bar(size=14, color=PALETTE[0], opacity=0.55).encode(x=alt.X("q1:Q"), x2="q3:Q")
    median = base.mark_tick(color=TEXT, thickness=2, size=14, aria=False).encode(x="median:Q")
    return _finished(alt.layer(whisker, box, median))
