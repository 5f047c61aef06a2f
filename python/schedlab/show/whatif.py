# SPDX-License-Identifier: MIT
"""What a person sees of `schedlab whatif`: fidelity, ranking, who pays, and what to do.

Invariant: nothing is advised above the fidelity; lines keep to the width of the terminal.
Read next: report/what_if.py, whose sentences and cells these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from ..report.what_if import (
    GROUP_HEADS,
    best_other,
    confirmed_sentence,
    cpus_text,
    fidelity_sentence,
    group_rows,
    name_of,
    ranking_rows,
    ratio_rows,
)
from .tables import _console, say, show_table

_STYLE = {"good": "green", "rough": "yellow"}


def show_what_if(found: dict[str, Any]) -> None:
    """Print what was found."""
    console = _console()
    fidelity = found["fidelity"]
    style = "yellow" if fidelity is None else _STYLE.get(fidelity["grade"], "red")
    say(console, f"[{style}]Fidelity[/]: {escape(fidelity_sentence(found))}")
    if fidelity and fidelity["disturbed"]:
        say(console, escape(f"{fidelity['disturbed']}."))
    heads = ("recorded", "replayed", "error", "grade")
    if fidelity:
        show_rows(
            console,
            "",
            ("metric", "recorded", "replayed", "varied", "error", "grade"),
            ratio_rows(fidelity["rows"], is_short=True),
        )
        show_rows(
            console, "Waited for a CPU, by group of tasks", ("group", *heads), ratio_rows(fidelity["groups"])
        )
    if found["ranking"]:
        title = f"Ranking by {found['metrics'][0]}, {found['seeds']} seeds"
        show_rows(console, title, ("policy", *found["metrics"]), ranking_rows(found))
        say(
            console,
            f"  Change from {escape(found['baseline'])} on {cpus_text(found['cpus'])}, {found['confidence']:.0%} interval; "
            "=: not told apart from the first, ?: not from the baseline.",
        )
    for each in found["failed"]:
        say(console, f"[red]left out[/] {escape(name_of(each))}: {escape(each['error'])}")
    for text in found["warnings"]:
        say(console, f"[yellow]warning[/]: {escape(text)}.")
    best = best_other(found)
    if best is not None:
        title = f"Who pays: waited for a CPU under {best['policy']}, by group of tasks"
        show_rows(console, title, ("group", *GROUP_HEADS[1:]), group_rows(best))
    if text := confirmed_sentence(found):
        say(console, f"[bold]Confirmed[/]: {escape(text)}.")
    say(console, f"[bold]Advice[/]: {escape(found['advice'])}.")
    if found["load"]:
        console.print(f"  {found['load']}", markup=False, soft_wrap=True, highlight=False)


def show_rows(console: Console, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table by rows; none where there are no rows."""
    if rows:
        console.print()
        if title:
            say(console, f"[bold]{escape(title)}[/]")
        show_table(console, "", [(head, [escape(row[i]) for row in rows]) for i, head in enumerate(heads)])
