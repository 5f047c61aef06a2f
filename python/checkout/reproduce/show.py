# SPDX-License-Identifier: MIT
"""What a person sees of a reproduction: progress, and a table of claims.

Must stay true: nothing here computes a number or a verdict.
Read next: reproduction.py; page.py, which says the same at length.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.markup import escape

from schedlab.show.progress import Progress
from schedlab.show.tables import plain_table, say, show

from .claims import FAILS, HOLDS, UNDECIDABLE, UNTESTED
from .reproduction import Reproduction
from .samples import Done
from .show_audit import show_audit
from .spec import Runs
from .text import count_sentences, interval_text, ours_text, published_text

STYLES = {HOLDS: "green", FAILS: "red", UNDECIDABLE: "dim", UNTESTED: "dim"}


class Watch:
    """Progress on standard error: a line per set of runs, a bar where that is a terminal."""

    def __init__(self, *, is_silent: bool):
        self._is_silent = is_silent
        self._bar = Progress()
        self._runs: Runs | None = None
        self._started = time.monotonic()
        self._n_reports = self._n_runs = self._n_new = self._n_failed = 0

    def __enter__(self) -> Watch:
        """Show the bar."""
        if not self._is_silent:
            self._bar.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        """Remove the bar."""
        if not self._is_silent:
            self._bar.__exit__(*exception)

    def report(self, name: str, number: int, total: int) -> None:
        """Name the report that is next, where there are several."""
        self._n_reports += 1
        if total > 1 and not self._is_silent:
            print(f"{name} ({number} of {total}), {self._minutes()} so far", file=sys.stderr)

    def total(self) -> None:
        """Sum up all reports."""
        if self._n_reports > 1 and not self._is_silent:
            failed = f"; {self._n_failed} failed" if self._n_failed else ""
            print(
                f"{self._n_reports} reports: {self._n_runs:,} runs, {self._n_new:,} of them now, in {self._minutes()}{failed}",
                file=sys.stderr,
            )

    def _minutes(self) -> str:
        """Time since the first report."""
        minutes, seconds = divmod(round(time.monotonic() - self._started), 60)
        return f"{minutes} min {seconds} s"

    def begin(self, runs: Runs) -> None:
        """Note which set is next."""
        self._runs = runs

    def expect(self, n_runs: int) -> None:
        """Say how many runs the next part has."""
        self._bar.expect(n_runs)

    def advance(self, run: dict[str, Any]) -> None:
        """Count one run."""
        self._bar.advance(run)

    def end(self, done: Done) -> None:
        """Say what came of a set."""
        n_failed = sum(run["status"] != "ok" for runs in done.found.values() for run in runs)
        self._n_runs, self._n_new = self._n_runs + done.n_runs, self._n_new + done.n_new
        self._n_failed += n_failed
        if self._is_silent:
            return
        text = done.problem or f"{done.n_runs} runs, {done.n_new} of them now, in {done.seconds:.0f} s"
        text += f"; {n_failed} failed" if n_failed else ""
        print(f"{done.runs.name} ({done.runs.title}): {text}", file=sys.stderr)


def show_reproduction(made: Reproduction) -> None:
    """Print a reproduction: its audit, its claims, and where the page is."""
    experiment = made.experiment
    print()
    say(f"[bold]{escape(experiment.title)}[/]")
    say(escape(experiment.question))
    show_audit(made.audit, show_all=False)
    table = plain_table()
    for heading in ("claim", "where", "published", "on", "ours", "95 % interval", "verdict"):
        is_number = heading in ("published", "ours", "95 % interval")
        table.add_column(heading, justify="right" if is_number else "left")
    previous = ""
    for decision in made.decisions:
        claim = decision.claim
        first = claim.name != previous
        previous = claim.name
        table.add_row(
            escape(claim.name) if first else "",
            escape(claim.where) if first else "",
            escape(published_text(decision)) if first else "",
            decision.on or "-",
            ours_text(decision),
            interval_text(decision),
            decision.verdict,
            style=STYLES.get(decision.verdict, ""),
        )
    show(table)
    for decision in made.decisions:
        if decision.verdict == UNTESTED:
            where = f" on {decision.on}" if decision.on else ""
            say(
                f"[dim]{escape(decision.claim.name)}{escape(where)} cannot be tested: {escape(decision.reason)}[/]"
            )
    for sentence in count_sentences(made):
        say(escape(sentence))
    for run in made.failed[:5]:
        say(
            f"[red]failed:[/] {escape(run['workload'])} under {escape(run['policy'])}: {escape(str(run['error']))}"
        )
    print(f"Page: {made.page}")
