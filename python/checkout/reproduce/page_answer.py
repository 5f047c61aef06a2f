# SPDX-License-Identifier: MIT
"""The top of a reproduced report's page: what a reader has after a minute.

Number and cause in three to five sentences, one picture with the report's bars beside
ours, what the author did well, what to change.

Invariant: every number here is computed from the published tables and the runs.
Read next: summary.py, which fills the numbers in; templates/answer.html, which asks for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from schedlab import html as page
from schedlab.plots import charts
from schedlab.stats.inference import mean_interval

from . import charts as draw
from .claims import measure_on
from .formula import MissingError
from .published import Formula
from .reproduction import Reproduction
from .summary import Picture, summary_of
from .text import number_text


class Drawn(NamedTuple):
    """The picture: what is compared, and each number as a text, or `"-"`."""

    sources: Sequence[str]
    drawn: Markup
    is_log: bool
    note: str
    unit: str
    rows: Sequence[tuple[str, Sequence[str]]]


def picture_marks(made: Reproduction, picture: Picture) -> dict[str, list[dict[str, Any]]]:
    """Compute the bars of the picture."""
    found: dict[str, list[dict[str, Any]]] = {}
    for bar in picture.bars:
        if bar.published:
            value = Formula(bar.published).value(made.tables).middle
            found.setdefault(draw.PUBLISHED, []).append(
                {
                    "group": bar.label,
                    "series": draw.PUBLISHED,
                    "value": value,
                    "low": None,
                    "high": None,
                    "values": [],
                }
            )
        for on in picture.on:
            if bar.ours is None:
                continue
            if on not in made.samples.done or made.samples.done[on].problem:
                continue
            try:
                sample = measure_on(bar.ours, on, made.samples)
            except MissingError:
                continue
            ours, title = mean_interval(sample.values, minimum=sample.minimum), made.experiment.runs[on].title
            is_wide = ours.method not in ("single", "deterministic")
            found.setdefault(title, []).append(
                {"group": bar.label, "series": title, "value": ours.estimate, "low": ours.low if is_wide else None,
                 "high": ours.high if is_wide else None, "values": []})  # fmt: skip
    return found


def picture_of(made: Reproduction) -> Drawn | None:
    """The report's bars beside ours, all on one axis; None where nothing of ours was run."""
    picture = summary_of(made).picture
    if picture is None:
        return None
    found = picture_marks(made, picture)
    sources = list(found)
    if not set(sources) - {draw.PUBLISHED}:
        return None
    marks = [mark for mine in found.values() for mark in mine]
    values = [
        value for mark in marks for value in (mark["value"], mark["low"], mark["high"]) if value is not None
    ]
    axis = draw.axes({"": values}, is_log=picture.is_log, is_shared=True)[""]
    groups = [bar.label for bar in picture.bars if any(mark["group"] == bar.label for mark in marks)]
    chart = draw.panel(
        marks, axis, groups=groups, series=sources, groups_are="", unit=picture.unit, width_px=draw.PICTURE_PX
    )
    words = [f"{mark['group']}, {mark['series']}: {number_text(mark['value'])}" for mark in marks]
    label = f"{picture.title}. {picture.unit}. {'; '.join(words)}."
    numbers = {(mark["group"], mark["series"]): number_text(mark["value"]) for mark in marks}
    drawn = page.figure(
        charts.to_svg(chart, has_variables=True), key="picture", title=picture.title, label=label
    )
    rows = [(group, [numbers.get((group, name), "-") for name in sources]) for group in groups]
    return Drawn(sources, drawn, axis.is_log, picture.note, picture.unit, rows)
