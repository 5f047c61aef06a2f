# SPDX-License-Identifier: MIT
"""What a person sees of `schedlab whatif`: fidelity, ranking, who pays, and what to do.

Invariant: nothing is advised above the fidelity; lines keep to the width of the terminal.
Read next: report/what_if.py, whose sentences and cells these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.markup import escape

from ..report.what_if import (
    FORECAST_CAPTION,
    GROUP_HEADS,
    best_other,
    confirmed_sentence,
    fidelity_sentence,
    forecast_rows,
    group_rows,
    host_caption,
    host_rows,
    left_out,
    measured_sentence,
    ranking_rows,
    ratio_rows,
)
from ..units import counted
from .tables import say, show_table

_STYLE = {"good": "green", "rough": "yellow"}


def show_what_if(found: dict[str, Any]) -> None:
    """Print what was found."""
    fidelity = found["fidelity"]
    style = "yellow" if fidelity is None else _STYLE.get(fidelity["grade"], "red")
    say(f"[{style}]Fidelity[/]: {escape(fidelity_sentence(found))}")
    if fidelity and fidelity["disturbed"]:
        say(escape(f"{fidelity['disturbed']}."))
    heads = ("recorded", "replayed", "error", "grade")
    if fidelity:
        show_rows(
            "",
            ("metric", "recorded", "replayed", "varied", "error", "grade"),
            ratio_rows(fidelity["rows"], is_short=True),
        )
        show_rows("Waited for a CPU, by group of tasks", ("group", *heads), ratio_rows(fidelity["groups"]))
    if found["ranking"]:
        title = f"Ranking by {found['metrics'][0]}, {found['seeds']} seeds"
        show_rows(title, ("policy", *found["metrics"]), ranking_rows(found))
        say(
            f"  Change from {escape(found['baseline'])} on {counted(found['cpus'], 'CPU')}, {found['confidence']:.0%} interval; "
            "=: not told apart from the first, ?: not from the baseline."
        )
    if rows := host_rows(found):
        show_rows(host_caption(found), ("policy", *found["on_host"]["metrics"]), rows)
    if rows := forecast_rows(found):
        show_rows("Linux would measure", ("policy", *found["metrics"]), rows)
        say(f"  {FORECAST_CAPTION}")
    for text in left_out(found):
        say(f"[red]{escape(text)}[/]")
    for text in found["warnings"]:
        say(f"[yellow]warning[/]: {escape(text)}.")
    best = best_other(found)
    if best is not None:
        title = f"Who pays: waited for a CPU under {best['policy']}, by group of tasks"
        show_rows(title, ("group", *GROUP_HEADS[1:]), group_rows(best))
    if text := confirmed_sentence(found):
        say(f"[bold]Confirmed[/]: {escape(text)}.")
    if text := measured_sentence(found):
        say(f"[bold]Measured[/]: {escape(text)}.")
    say(f"[bold]Advice[/]: {escape(found['advice'])}.")
    if found["load"]:
        print(f"  {found['load']}")


def show_rows(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table by rows; none where there are no rows."""
    if rows:
        print()
        if title:
            say(f"[bold]{escape(title)}[/]")
        show_table("", [(head, [escape(row[i]) for row in rows]) for i, head in enumerate(heads)])
