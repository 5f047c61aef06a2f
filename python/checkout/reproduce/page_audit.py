# SPDX-License-Identifier: MIT
"""The audit on the page of a reproduced report: the report against its own rows.

What does not hold comes first, by kind of check, equal checks together; all rows that the
report prints can be unfolded at the end of the page, those in doubt marked.
templates/audit.html and templates/rows.html ask for what is here.

Read next: audit.py, which recomputes; page.py, the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .audit import KINDS, Audit, Finding
from .published import Table
from .reproduction import Reproduction

#: From this many findings on, a check has a heading and its findings one line each.
MANY = 3


class Check(NamedTuple):
    """What one check found; `heading` is empty where that is little, `note` where each has its own."""

    text: str
    heading: str
    note: str
    findings: Sequence[Finding]


class PrintedTable(NamedTuple):
    """A table as printed: a row is its key, its cells and what the audit found in it."""

    name: str
    heads: Sequence[str]
    rows: Sequence[tuple[tuple[str, ...], Sequence[str], str]]
    n_doubted: int


def said_of_kind(kind: str, number: int, total: int) -> str:
    """How many checks of a kind fail, of how many."""
    return f"{number} of {total:,} {KINDS[kind][0 if total == 1 else 1]} {'does' if number == 1 else 'do'} not hold"


def checks(findings: Sequence[Finding], audit: Audit) -> list[Check]:
    """Findings of a kind by check, in the order of the first of each; checks of few findings before others."""
    totals = Counter(finding.text for finding in audit.findings)
    by_text: dict[str, list[Finding]] = {}
    for finding in findings:
        by_text.setdefault(finding.text, []).append(finding)
    few = [Check(text, "", "", mine) for text, mine in by_text.items() if len(mine) < MANY]
    many = []
    for text, mine in by_text.items():
        if len(mine) >= MANY:
            notes = {finding.note for finding in mine}
            # Rows that repeat another are all that such a check finds.
            of = "" if mine[0].check == "repeats" else f" of {totals[text]:,}"
            heading = f"{text}: {'so' if mine[0].follows else 'not so'} in {len(mine):,}{of}"
            many.append(Check(text, heading, notes.pop() if len(notes) == 1 else "", mine))
    return few + many


def place_text(finding: Finding, tables: dict[str, Table]) -> str:
    """Say where a finding is, with the names of numbers."""
    if not finding.key:
        return finding.where
    words = [
        part if not part.replace(".", "").isdigit() else f"{name} {part}"
        for name, part in zip(tables[finding.table].keys, finding.key, strict=True)
    ]
    section, _, rest = finding.where.partition(" ".join(finding.key))
    return ", ".join([section.rstrip(", "), *words]) + rest


def printed_tables(made: Reproduction) -> Iterator[PrintedTable]:
    """All tables of the report."""
    doubts: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}
    for finding in made.audit.wrong:
        if finding.key:
            said = f"{finding.text}: not so" + (f" ({finding.note})" if finding.note else "")
            doubts.setdefault((finding.table, finding.key), {})[said] = None
    for table in made.tables.values():
        columns = list(dict.fromkeys(column for cells in table.rows.values() for column in cells))
        rows = [
            (key, [cells.get(column, "") for column in columns], "; ".join(doubts.get((table.name, key), ())))
            for key, cells in table.rows.items()
        ]
        yield PrintedTable(table.name, (*table.keys, *columns), rows, sum(bool(doubt) for *_, doubt in rows))
