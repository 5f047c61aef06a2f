# SPDX-License-Identifier: MIT
"""What a person sees of an audit: each figure that does not follow, and why.

Read next: reproduce/audit.py.
"""

from __future__ import annotations

from rich.markup import escape

from ..reproduce.audit import Audit, Finding, Range
from ..reproduce.text import number_text
from .tables import _console, _plain_table


def show_audit(audit: Audit, *, show_all: bool) -> None:
    """Print an audit.

    Parameters
    ----------
    audit : Audit
        What `audit_report` returned.
    show_all : bool
        The figures that follow as well.
    """
    console = _console()
    wrong, shown = audit.wrong, audit.findings if show_all else audit.wrong
    console.print(
        f"[bold]Report {audit.report}[/]: {len(wrong)} of {len(audit.findings)} derived figures do not "
        "follow from the report's own rows.", highlight=False, soft_wrap=True,
    )  # fmt: skip
    if not shown:
        return
    table = _plain_table(console, "")
    for heading in ("where", "it says", "published", "recomputed"):
        table.add_column(heading, justify="right" if heading in ("published", "recomputed") else "left")
    for finding in shown:
        said = finding.text + (f" ({finding.note})" if finding.note and not finding.follows else "")
        style = "" if finding.follows else "bold"
        table.add_row(escape(finding.where), escape(said), escape(finding.published),
                      recomputed_text(finding), style=style)  # fmt: skip
    console.print(table, highlight=False)
    console.print()


def recomputed_text(finding: Finding) -> str:
    """What follows from the report's rows, in as many digits as they allow.

    Parameters
    ----------
    finding : Finding
        One figure.

    Returns
    -------
    str
        A number, two where rounding leaves more open, or `"-"`.

    Examples
    --------
    >>> recomputed_text(Finding(5, "", "", "153 %", Range(142.44, 142.58), False, "figure"))
    '142.4 .. 142.6'
    >>> recomputed_text(Finding(1, "", "", "72 %", Range(71.2, 73.6), True, "figure", unit="%"))
    '71.2 .. 73.6 %'
    """
    if finding.kind == "order":
        return "holds" if finding.follows else "does not hold"
    if finding.recomputed is None:
        return "-"
    return f"{_digits(finding.recomputed)} {finding.unit}".rstrip()


def _digits(value: Range) -> str:
    """Both ends, or one where they look alike."""
    low, high = number_text(value.low), number_text(value.high)
    return low if low == high else f"{low} .. {high}"
