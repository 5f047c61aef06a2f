# SPDX-License-Identifier: MIT
"""An audit in the terminal: what does not follow, by kind of check, and why.

Read next: audit.py.
"""

from __future__ import annotations

from rich.markup import escape

from schedlab.show.tables import plain_table, say, show

from .audit import KINDS, Audit, Finding
from .published import Range
from .text import number_text


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


def recomputed_text(finding: Finding) -> str:
    """What follows from the report's rows, in as many digits as they allow.

    >>> recomputed_text(Finding(5, "", "", "153 %", Range(142.44, 142.58), False, "figure"))
    '142.4 .. 142.6'
    >>> recomputed_text(Finding(1, "", "", "72 %", Range(71.2, 73.6), True, "figure", unit="%"))
    '71.2 .. 73.6 %'
    """
    if finding.is_comparison:
        return "holds" if finding.follows else "does not hold"
    if finding.recomputed is None:
        return "-"
    return f"{_digits(finding.recomputed)} {finding.unit}".rstrip()


def _digits(value: Range) -> str:
    """Both ends, or one where they look alike."""
    low, high = number_text(value.low), number_text(value.high)
    return low if low == high else f"{low} .. {high}"
