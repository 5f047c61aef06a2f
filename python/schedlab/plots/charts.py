# SPDX-License-Identifier: MIT
"""Charts of comparisons: one Altair specification each, for page, notebook and paper.

Each function takes plain rows and returns an `altair.Chart`, which a notebook
shows as it is. `to_svg` draws it for the page, where colours become variables of
its style sheet so that they follow light and dark; `save` draws it for a paper.

Must stay true: colour never carries a meaning alone; policies also differ by
place, dash or shape. Every sample is drawn.
Read next: report/data.py, where the rows come from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from ..metrics.dictionary import DICTIONARY
from ..stats.sentences import label

#: After Okabe and Ito (2008), with the yellow and the greys darkened for white paper.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a6d3b", "#6f6f6f")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)
TEXT, GRID = "#1b1b1e", "#d8d8dc"
WIDTH_PX = 330
#: From this ratio of largest to smallest on, an axis is logarithmic.
LOG_RATIO = 30
SHORTEST_NS = 1000
_TIME_LABEL = (
    "datum.value == 0 ? '0' : datum.value >= 1e9 ? format(datum.value / 1e9, '~g') + ' s' : "
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' ms' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '~g') + ' us' : format(datum.value, '~g') + ' ns'"
)


def samples(rows: Sequence[dict[str, Any]], metric: str) -> alt.LayerChart:
    """Dots with boxes: one dot per run, one box per policy."""
    values = [row["value"] for row in rows]
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    seeds = sorted({row["seed"] for row in rows})
    # Dots of equal value stand beside each other, in the order of their seeds.
    place = {seed: (i + 0.5) / len(seeds) - 0.5 for i, seed in enumerate(seeds)}
    data = alt.Data(values=[row | {"place": place[row["seed"]]} for row in rows])
    is_part = metric.endswith(("_share", "_utilisation"))
    x = alt.X("value:Q", **_place(values, "%" if is_part else DICTIONARY[metric].unit), title=None)
    y = alt.Y("policy:N", sort=policies, title=None, scale=alt.Scale(paddingInner=0.25))
    base = alt.Chart(data, width=WIDTH_PX, height=alt.Step(24))
    box = base.mark_boxplot(
        extent="min-max",
        size=15,
        color=PALETTE[7],
        box={"fillOpacity": 0.12, "stroke": PALETTE[7]},
        median={"color": TEXT, "strokeWidth": 2},
    ).encode(x=x, y=y)
    dots = base.mark_circle(size=18, opacity=0.75, color=PALETTE[0], aria=False).encode(
        x=x, y=y, yOffset=alt.YOffset("place:Q", scale=alt.Scale(domain=[-0.5, 0.5]))
    )
    mean = base.mark_point(shape="diamond", size=55, filled=True, color=PALETTE[1], aria=False).encode(
        x=alt.X("mean(value):Q"), y=y
    )
    return _finished(alt.layer(box, dots, mean))


def distribution(rows: Sequence[dict[str, Any]], *, title: str) -> alt.Chart:
    """Draw the part of all values that is at most a time, one curve per policy."""
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    data = []
    for policy in policies:
        mine = [r | {"value": max(r["value"], SHORTEST_NS)} for r in rows if r["policy"] == policy]
        # A curve rises from 0, so that one whose values are all equal is seen too.
        data += [mine[0] | {"part": 0.0}, *mine]
    x = alt.X("value:Q", title=title, **_place([row["value"] for row in data], "ns"))
    y = alt.Y(
        "part:Q", title="part of all", axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, 1])
    )
    return _finished(_lines(data, policies).encode(x=x, y=y))


def fairness(rows: Sequence[dict[str, Any]]) -> alt.Chart:
    """Fairness from the start of the run up to each moment."""
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    x = alt.X("t_ns:Q", title="time since the start of the run", axis=_axis("ns"))
    y = alt.Y("fairness:Q", title="fairness so far (Jain)", scale=alt.Scale(domain=[0, 1]))
    return _finished(_lines(rows, policies).encode(x=x, y=y))


def shares(rows: Sequence[dict[str, Any]]) -> alt.FacetChart:
    """CPU time received against CPU time deserved, one small chart per policy."""
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    top = max([max(row["deserved"], row["received"]) for row in rows] or [1]) or 1
    scale = alt.Scale(domain=[0, top], nice=True)
    axis = alt.Axis(format=".0%" if top > 0.05 else ".1%", tickCount=3)
    dots = (
        alt.Chart()
        .mark_point(size=45, filled=True, aria=False)
        .encode(
            x=alt.X("deserved:Q", scale=scale, axis=axis),
            y=alt.Y("received:Q", scale=scale, axis=axis),
            **_by_task(tasks),
        )
    )
    rule = (
        alt.Chart()
        .mark_rule(color=PALETTE[7], strokeDash=[3, 3], aria=False)
        .encode(x=alt.datum(0), x2=alt.datum(top), y=alt.datum(0), y2=alt.datum(top))
    )
    small = alt.layer(rule, dots, width=84, height=84)
    return _finished(
        small.facet(
            facet=alt.Facet("policy:N", sort=policies, title=None),
            columns=3,
            data=alt.Data(values=list(rows)),
        )
    )


def heatmap(rows: Sequence[dict[str, Any]]) -> alt.LayerChart:
    """Every policy by every metric: the mean as text, the distance from the best as shade."""
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    base = alt.Chart(alt.Data(values=list(rows)), width=alt.Step(96), height=alt.Step(26)).encode(
        x=alt.X(
            "metric:N", sort=metrics, title=None, axis=alt.Axis(orient="top", labelAngle=-20, labelLimit=200)
        ),
        y=alt.Y("policy:N", sort=policies, title=None),
    )
    shade = alt.Color(
        "worse:Q",
        scale=alt.Scale(
            type="log", domain=[1, 10], range=["#ffffff", "#08519c"], clamp=True, interpolate="rgb"
        ),
        legend=alt.Legend(
            title="times worse than the best",
            orient="bottom",
            values=[1, 2, 5, 10],
            gradientLength=200,
            labelExpr="datum.value >= 10 ? '10 or more' : datum.label",
        ),
    )
    cells = base.mark_rect(stroke=GRID, aria=False).encode(color=shade)
    # The text stands on the shade and not on the page, so it ignores light and dark.
    text = base.mark_text(fontSize=11, aria=False).encode(
        text="text:N", color=alt.condition("datum.worse > 6", alt.value("#fefefe"), alt.value("#111112"))
    )
    return _finished(cells + text)


def _lines(rows: Sequence[dict[str, Any]], policies: list[str]) -> alt.Chart:
    """One line per policy, told apart by colour and by dash."""
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(policies))]
    # Neighbours in the legend differ in both; a colour comes back with another dash.
    dashes = [DASHES[(i + i // len(PALETTE)) % len(DASHES)] for i in range(len(policies))]
    legend = alt.Legend(title=None, orient="bottom", columns=4, symbolSize=300, symbolStrokeWidth=2)
    return (
        alt.Chart(alt.Data(values=list(rows)), width=WIDTH_PX, height=220)
        .mark_line(strokeWidth=1.8, interpolate="step-after", aria=False)
        .encode(
            color=alt.Color(
                "policy:N", sort=policies, legend=legend, scale=alt.Scale(domain=policies, range=colours)
            ),
            strokeDash=alt.StrokeDash(
                "policy:N", sort=policies, legend=legend, scale=alt.Scale(domain=policies, range=dashes)
            ),
        )
    )


def _by_task(tasks: list[str]) -> dict[str, Any]:
    """Colour and shape for tasks, where there are few enough to be told apart."""
    if len(tasks) > len(SHAPES):
        return {"color": alt.value(PALETTE[0])}
    legend = alt.Legend(title=None, orient="bottom", columns=4)
    n = len(tasks)
    by: dict[str, Any] = {"sort": tasks, "legend": legend}
    return {
        "color": alt.Color("task:N", scale=alt.Scale(domain=tasks, range=list(PALETTE[:n])), **by),
        "shape": alt.Shape("task:N", scale=alt.Scale(domain=tasks, range=list(SHAPES[:n])), **by),
    }


def _axis(unit: str, ticks: Sequence[float] | None = None) -> alt.Axis:
    """Axis that writes times as people do."""
    named = {"values": list(ticks)} if ticks else {"tickCount": 5}
    if unit == "ns":
        return alt.Axis(labelExpr=_TIME_LABEL, labelOverlap=True, **named)
    return alt.Axis(labelOverlap=True, **named | ({"format": "~%"} if unit == "%" else {}))


def _place(values: Sequence[float], unit: str) -> dict[str, Any]:
    """Axis and scale: logarithmic where the values span more than a decade and a half."""
    low, high = min(values, default=0), max(values, default=0)
    if not 0 < LOG_RATIO * low < high:
        return {"axis": _axis(unit), "scale": alt.Scale(zero=False, nice=True, padding=6)}
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if len(powers) > 4 else (1, 3)
    ticks = [m * 10**power for power in powers for m in steps if low / 1.5 <= m * 10**power <= high * 1.5]
    # Room for the dots at both ends.
    domain = [min([low, *ticks]) / 1.12, max([high, *ticks]) * 1.12]
    return {"axis": _axis(unit, ticks), "scale": alt.Scale(type="log", domain=domain, nice=False)}


def _finished(chart: Any) -> Any:
    """The look that all charts share."""
    small = {"labelColor": TEXT, "titleColor": TEXT, "labelFontSize": 11}
    words = small | {"titleFontSize": 11, "titleFontWeight": "normal"}
    lines = {"gridColor": GRID, "domainColor": PALETTE[7], "tickColor": PALETTE[7]}
    return (
        chart.configure(background="transparent", font="sans-serif")
        .configure_view(stroke=GRID)
        .configure_axis(labelLimit=130, **words, **lines)
        .configure_legend(labelLimit=110, **words)
        .configure_header(labelPadding=3, **small)
    )


def to_svg(chart: Any, *, has_variables: bool = False) -> str:
    """Draw a chart."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(chart.to_dict(validate=False))
    if has_variables:
        for i, colour in enumerate(PALETTE):
            svg = svg.replace(f'"{colour}"', f'"var(--s{i})"')
        svg = svg.replace(f'"{TEXT}"', '"var(--text)"').replace(f'"{GRID}"', '"var(--grid)"')
    return svg


def save(chart: Any, path: Path) -> list[Path]:
    """Write a chart as SVG and as PDF."""
    import vl_convert

    files = [path.with_name(path.name + suffix) for suffix in (".svg", ".pdf")]
    files[0].write_text(to_svg(chart), encoding="utf-8")
    files[1].write_bytes(vl_convert.vegalite_to_pdf(chart.to_dict(validate=False)))
    return files


def heading(metric: str) -> str:
    """Title of a metric's chart: its label, and which way is better.

    >>> heading("starvation_ns")
    'Longest wait (lower is better)'
    """
    text = label(metric)
    direction = DICTIONARY[metric].direction
    return text[:1].upper() + text[1:] + ("" if direction == "none" else f" ({direction} is better)")
