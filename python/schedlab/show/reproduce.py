# SPDX-License-Identifier: MIT
"""What a person sees of a reproduction: progress, and a table of claims.

Must stay true: nothing here computes a number or a verdict.
Read next: reproduce/reproduction.py; reproduce/page.py, which says the same at length.
"""

from __future__ import annotations

import sys

from rich.markup import escape

from ..reproduce.claims import FAILS, HOLDS, UNDECIDABLE, UNTESTED
from ..reproduce.reproduction import Reproduction
from ..reproduce.samples import Done
from ..reproduce.spec import Runs
from ..reproduce.text import count_sentences, interval_text, ours_text, published_text
from .audit import show_audit
from .tables import Progress, _console, _plain_table

STYLES = {HOLDS: "green", FAILS: "red", UNDECIDABLE: "dim", UNTESTED: "dim"}


class Watch:
    """Progress on standard error: a line per set of runs, a bar where that is a terminal.

    Parameters
    ----------
    is_silent : bool
        Whether nothing is said.
    """

    def __init__(self, *, is_silent: bool):
        self._is_silent = is_silent
        self._bar = Progress()
        self._runs: Runs | None = None

    def __enter__(self) -> Watch:
        """Show the bar."""
        if not self._is_silent:
            self._bar.__enter__()
        return self

    def __exit__(self, *exception) -> None:
        """Remove the bar."""
        if not self._is_silent:
            self._bar.__exit__(*exception)

    def begin(self, runs: Runs) -> None:
        """Note which set is next."""
        self._runs = runs

    def expect(self, nr_runs: int) -> None:
        """Say how many runs the next part has."""
        self._bar.expect(nr_runs)

    def advance(self, run: dict) -> None:
        """Count one run."""
        self._bar.advance(run)

    def end(self, done: Done) -> None:
        """Say what came of a set."""
        if self._is_silent:
            return
        text = done.problem or f"{done.nr_runs} runs, {done.nr_new} of them now, in {done.seconds:.0f} s"
        nr_failed = sum(run["status"] != "ok" for runs in done.found.values() for run in runs)
        text += f"; {nr_failed} failed" if nr_failed else ""
        print(f"{done.runs.name} ({done.runs.title}): {text}", file=sys.stderr)


def show_reproduction(made: Reproduction) -> None:
    """Print a reproduction: its audit, its claims, and where the page is.

    Parameters
    ----------
    made : Reproduction
        What `reproduce_report` returned.
    """
    console = _console()
    experiment = made.experiment
    console.print(f"\n[bold]{escape(experiment.title)}[/]\n{escape(experiment.question)}", highlight=False)
    show_audit(made.audit, show_all=False)
    table = _plain_table(console, "")
    for heading in ("claim", "where", "published", "on", "ours", "95 % interval", "verdict"):
        is_number = heading in ("published", "ours", "95 % interval")
        table.add_column(heading, justify="right" if is_number else "left")
    previous = ""
    for decision in made.decisions:
        claim = decision.claim
        first = claim.name != previous
        previous = claim.name
        table.add_row(
            escape(claim.name) if first else "", escape(claim.where) if first else "",
            escape(published_text(decision)) if first else "", decision.on or "-",
            ours_text(decision), interval_text(decision), decision.verdict,
            style=STYLES.get(decision.verdict, ""),
        )  # fmt: skip
    console.print(table, highlight=False)
    for decision in made.decisions:
        if decision.verdict == UNTESTED:
            where = f" on {decision.on}" if decision.on else ""
            console.print(f"[dim]{escape(decision.claim.name)}{escape(where)} cannot be tested: {escape(decision.reason)}[/]", highlight=False)
    for sentence in count_sentences(made):
        console.print(escape(sentence), highlight=False)
    for run in made.failed[:5]:
        console.print(f"[red]failed:[/] {escape(run['workload'])} under {escape(run['policy'])}: "
                      f"{escape(str(run['error']))}", highlight=False)  # fmt: skip
    console.print(f"Page: {escape(str(made.page))}", highlight=False, soft_wrap=True)
