# SPDX-License-Identifier: MIT
"""An audit in the terminal: what does not follow, by kind of check, and why.

Read next: audit.py.
"""

from __future__ import annotations

from rich.markup import escape

from schedlab.show.tables import plain_table, say, show

from .audit import KINDS, Audit, Finding
from .text import recomputed_text


def show_audit(audit: Audit, *, show_all: bool) -> None:
    """Print an audit."""
    say(f"[bold]Report {audit.report}[/]. {escape(audit.sentence)}")
    for kind, (number, total) in audit.counts.items():
        shown = [
            finding
            for finding in audit.findings
            if finding.kind == kind and (show_all or not finding.follows)
        ]
        if shown:
            print()
            title = f"{number} of {total:,} {KINDS[kind][0 if total == 1 else 1]}"
            _show_kind(title, shown, show_all=show_all)
    print()


def _show_kind(title: str, findings: list[Finding], *, show_all: bool) -> None:
    """All findings of a kind, those that follow less bright."""
    is_comparison = all(finding.is_comparison for finding in findings)
    table = plain_table(title)
    headings = (
        ("where", "it says", "its numbers")
        if is_comparison
        else ("where", "it says", "published", "recomputed")
    )
    for heading in headings:
        table.add_column(heading, justify="right" if heading in ("published", "recomputed") else "left")
    above = ""
    for finding in findings:
        said = finding.text + (f" ({finding.note})" if finding.note and not finding.follows else "")
        # A check of many rows says the same of each.
        text, above = "as above" if said == above else said, said
        if is_comparison and show_all:
            text += ": holds" if finding.follows else ": does not hold"
        cells = [
            finding.where,
            text,
            finding.published,
            *([] if is_comparison else [recomputed_text(finding)]),
        ]
        table.add_row(*map(escape, cells), style="bold" if show_all and not finding.follows else "")
    show(table)
