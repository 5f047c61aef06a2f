# SPDX-License-Identifier: MIT
"""docs/replication.md read back, row by row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from checkout.reproduce.replication import COLUMNS
from schedlab.errors import UsageError

_STEP = re.compile(r"; step (\S+)$")


@dataclass(frozen=True)
class Row:
    """A row of the page, read back."""

    report: int  #: 1 to 5.
    #: `claim`, `on`: The claim's id, and the set of runs; the latter may be empty.
    claim: str
    on: str
    #: `ours`, `low`, `high`: Our figure and its interval; all equal where all runs are.
    ours: float | None
    low: float | None
    high: float | None
    verdict: str  #: As written.
    #: Smallest step of the report's instrument, in the unit of the claim; 0: not stated.
    resolution: float = 0.0


def read_replication(path: Path) -> list[Row]:
    """Read the rows of the page."""
    rows, report = [], 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := re.fullmatch(r"<!-- report (\d+) -->", line):
            report = int(match[1])
        if not line.startswith("| `"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != len(COLUMNS):
            raise UsageError(
                f"{path}:{number}: {len(cells)} cells in place of {len(COLUMNS)}; make the page anew"
            )
        ours = _number(cells[5])
        step = float(match[1]) if (match := _STEP.search(cells[3])) else 0.0
        low, _, high = cells[6].partition(" .. ")
        is_equal = cells[6].startswith("all ")
        rows.append(
            Row(
                report,
                cells[0].strip("`"),
                cells[4].strip("`-"),
                ours,
                ours if is_equal else _number(low),
                ours if is_equal else _number(high),
                cells[7],
                step,
            )
        )
    return rows


def _number(text: str) -> float | None:
    """A number with its unit behind it; None for a dash."""
    word = text.split(" ")[0].replace(",", "")
    return None if word in ("-", "") else float(word)
