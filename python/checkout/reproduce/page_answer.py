# SPDX-License-Identifier: MIT
"""The top of a reproduced report's page: what a reader has after a minute.

Number and cause in three to five sentences, one picture with the report's bars beside
ours, what the author did well, what to change.

Invariant: every number here is computed from the published tables and the runs.
Read next: summary.py, which fills the numbers in; page.py, the page.
"""

from __future__ import annotations

from html import escape
from typing import Any

from schedlab import html as page
from schedlab.plots import charts
from schedlab.stats.inference import mean_interval

from . import charts as draw
from .claims import measure_on
from .formula import MissingError
from .published import Formula
from .reproduction import Reproduction
from .summary import Picture, sentences_of, summary_of
from .text import count_sentences, number_text


def answer_section(made: Reproduction) -> str:
    """Answer, picture, what is good and what to change."""
    sentences, n_missing = sentences_of(made, "answer")
    said = "".join(f"<p>{page.prose(sentence)}</p>" for sentence in sentences or count_sentences(made))
    if n_missing:
        said += (
            f'<p class="soft small">{page.counted(n_missing, "more sentence")} of this answer need'
            f"{'s' if n_missing == 1 else ''} runs that were not done yet: see the set-up at the end.</p>"
        )
    halves = "".join(
        f'<div class="half"><h3>{heading}</h3><ul>{"".join(f"<li>{page.prose(each)}</li>" for each in found)}</ul></div>'
        for kind, heading in (("well", "What the author did well"), ("change", "What to change"))
        if (found := sentences_of(made, kind)[0])
    )
    drawn = _picture(made)
    return f"""<section id="answer">
<h2>The answer in a minute</h2>
<div class="answer{" drawn" if drawn else ""}"><div class="lead">{said}</div>{drawn}</div>
<div class="two">{halves}</div>
</section>"""


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


def _picture(made: Reproduction) -> str:
    """The report's bars beside ours, all on one axis."""
    picture = summary_of(made).picture
    if picture is None:
        return ""
    found = picture_marks(made, picture)
    sources = list(found)
    if not set(sources) - {draw.PUBLISHED}:
        return ""
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
    legend = "".join(
        f'<li><span class="swatch" style="background:var(--s{place})"></span>{escape(name)}</li>'
        for place, name in enumerate(sources)
    )
    numbers = "".join(
        _numbers_row(group, [next((m for m in found[name] if m["group"] == group), None) for name in sources])
        for group in groups
    )
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in sources)
    note = f'<p class="small soft">{page.prose(picture.note)}</p>' if picture.note else ""
    scale = '<p class="small soft">The axis is logarithmic.</p>' if axis.is_log else ""
    drawn = page.figure(
        charts.to_svg(chart, has_variables=True), key="picture", title=picture.title, label=label
    )
    return (
        f'<div class="picture"><ul class="legend">{legend}</ul>{drawn}{scale}{note}'
        f'<details class="small"><summary>The numbers of the picture ({escape(picture.unit)})</summary><div class="scroll"><table>'
        f"<thead><tr><th></th>{heads}</tr></thead><tbody>{numbers}</tbody></table></div></details></div>"
    )


def _numbers_row(group: str, marks: list[dict[str, Any] | None]) -> str:
    """A row of the picture's numbers."""
    cells = "".join(f"<td>{number_text(mark['value']) if mark else '-'}</td>" for mark in marks)
    return f'<tr><th scope="row">{escape(group)}</th>{cells}</tr>'
