# SPDX-License-Identifier: MIT
"""What a person sees of `schedlab tune`: knobs, what the search found, and whether it holds elsewhere.

Invariant: what the search saw never stands without what the held-out seeds say.
Read next: measure/tune.py.
"""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from ..report.what_if import FORECAST_CAPTION, change_text, forecast_text, measured_sentence
from ..stats.sentences import show_number
from .tables import say
from .whatif import show_rows

_SIDES = {"training": "training", "held_out": "held out"}


def show_tuned(found: dict[str, Any]) -> None:
    """Print what was found."""
    met = f"; {found['feasible']} meet {' and '.join(found['conditions'])}" if found["conditions"] else ""
    failed = f"; {found['failed']} failed" if found["failed"] else ""
    text = f"{found['trials'] + found['failed']} settings, {found['seeds']} seeds each{met}{failed}"
    say(f"[bold]{escape(found['policy'])}[/]: {escape(text)}")
    best = found["front"][0] if found["front"] else None
    objectives = found["objectives"]
    rows = [
        [knob["knob"], knob["range"], knob["default"], best["shown"][knob["knob"]] if best else "-",
         *(_share(found["importance"][name].get(knob["knob"])) for name in objectives)]
        for knob in found["knobs"]
    ]  # fmt: skip
    matters = [f"matters for\n{name}" for name in objectives]
    show_rows("Knobs", ("knob", "searched", "default", "best", *matters), rows)
    if best is not None and best["shown"]:
        rows = [
            _row(name, _SIDES[side], best[side]) for name in found["metrics"] for side in _SIDES if best[side]
        ]
        title = (
            f"Default against best; training: {found['seeds']} seeds, held out: {found['held_out']} others"
        )
        show_rows(title, ("metric", "seeds", "default", "best", "change"), rows)
    if len(objectives) > 1:
        title = "Settings of which none is beaten in everything, with held-out seeds"
        rows = [
            [each["policy"], *(change_text(name, each["held_out"][name]) for name in objectives)]
            for each in found["front"]
            if each["held_out"]
        ]
        show_rows(title, ("policy", *objectives), rows)
    if found["forecast"] and best is not None:
        rows = [[name, forecast_text(name, made)] for name, made in found["forecast"].items()]
        title = f"Linux would measure under {found['class'] or best['policy']}"
        show_rows(title, ("metric", "from .. to"), rows)
        say(f"  {FORECAST_CAPTION}")
    print()
    if text := measured_sentence(found):
        say(f"[bold]Measured[/]: {escape(text)}.")
    say(f"[bold]Answer[/]: {escape(found['advice'])}.")
    if found["load"]:
        print(f"  {found['load']}")


def _row(name: str, side: str, compared: dict[str, Any]) -> list[str]:
    entry = compared[name]
    unsure = "" if entry["better"] or entry["verdict"] == "no difference" else " ?"
    return [name, side, show_number(name, entry["mean_a"]), show_number(name, entry["mean_b"]),
            change_text(name, entry) + unsure]  # fmt: skip


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
