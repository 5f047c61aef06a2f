# SPDX-License-Identifier: MIT
"""The audit on the page of a reproduced report: the report against its own rows.

What does not hold comes first, by kind of check, equal checks together; all rows that the
report prints can be unfolded at the end of the page, those in doubt marked.

Invariant: every text that comes from a file is escaped.
Read next: audit.py, which recomputes; page.py, the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

from schedlab import html as page

from .audit import KINDS, Finding
from .published import Table
from .reproduction import Reproduction
from .text import number_text

#: From this many findings on, a check has a heading and its findings one line each.
MANY = 3


def audit_section(made: Reproduction) -> str:
    """What does not follow from the report's own rows, by kind of check; the rest on demand."""
    audit = made.audit
    right = [finding for finding in audit.findings if finding.follows]
    text = (
        "A report measures some numbers and derives others from them; its text compares them; and some must agree with each "
        "other whatever was measured. Here all of that was computed anew from its own tables. Nothing was run for this: it is "
        "the report against itself, and what any rounding of its numbers explains is not held against it."
    )
    wrong = "".join(
        f"<h3>{escape(counted(kind, *count))}</h3>{_findings([each for each in audit.wrong if each.kind == kind], made)}"
        for kind, count in audit.counts.items()
        if count[0]
    )
    folded = ""
    if right:
        tables = "".join(
            f"<h4>{escape(KINDS[kind][1].capitalize())}</h4>{_findings(mine, made)}"
            for kind in audit.counts
            if (mine := [finding for finding in right if finding.kind == kind])
        )
        folded = f"<details><summary>The {len(right):,} that hold</summary>{tables}</details>"
    return f"""<section id="audit">
<h2>Audit: does it follow from its own rows?</h2>
<p>{escape(text)}</p>
{wrong or "<p>All of it does.</p>"}
{folded}
</section>"""


def counted(kind: str, number: int, total: int) -> str:
    """How many checks of a kind fail, of how many."""
    return f"{number} of {total:,} {KINDS[kind][0 if total == 1 else 1]} {'does' if number == 1 else 'do'} not hold"


def _findings(findings: Sequence[Finding], made: Reproduction) -> str:
    """A table of findings of a kind, equal checks below one heading."""
    tables, totals = made.tables, Counter(finding.text for finding in made.audit.findings)
    is_comparison = all(finding.is_comparison for finding in findings)
    checks: dict[str, list[Finding]] = {}
    for finding in findings:
        checks.setdefault(finding.text, []).append(finding)
    rows = [
        _finding(finding, tables, f"{escape(text)}{_note(finding.note)}", is_comparison=is_comparison)
        for text, mine in checks.items()
        if len(mine) < MANY
        for finding in mine
    ]
    for text, mine in checks.items():
        if len(mine) < MANY:
            continue
        notes = {finding.note for finding in mine}
        common = notes.pop() if len(notes) == 1 else ""
        # Rows that repeat another are all that such a check finds.
        of = "" if mine[0].check == "repeats" else f" of {totals[text]:,}"
        result = f"{'so' if mine[0].follows else 'not so'} in {len(mine):,}{of}"
        rows.append(
            f'<tr class="check"><th scope="rowgroup" colspan="{3 if is_comparison else 4}">{escape(text)}: {result}{_note(common)}</th></tr>'
        )
        rows += [
            _finding(finding, tables, "" if common else _note(finding.note), is_comparison=is_comparison)
            for finding in mine
        ]
    heads = (
        '<th scope="col">its numbers, which would have to be so</th>'
        if is_comparison
        else '<th scope="col" class="number">published</th><th scope="col" class="number">from its own rows</th>'
    )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="The report against its own tables">'
        f'<table class="words audit"><thead><tr><th scope="col">where</th><th scope="col">what is said</th>{heads}</tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _finding(finding: Finding, tables: dict[str, Table], said: str, *, is_comparison: bool) -> str:
    """A row of such a table."""
    place = escape(place_text(finding, tables))
    numbers = (
        f'<td data-label="its numbers">{escape(finding.published)}</td>'
        if is_comparison
        else f'<td class="number" data-label="published">{escape(finding.published)}</td>'
        f'<td class="number" data-label="from its own rows">{_recomputed(finding)}</td>'
    )
    return (
        f"<tr><td>{place}</td><td>{said}</td>" if said else f'<tr><td colspan="2">{place}</td>'
    ) + f"{numbers}</tr>"


def _note(text: str) -> str:
    """What a reader should know."""
    return f' <span class="soft">({escape(text)})</span>' if text else ""


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


def _recomputed(finding: Finding) -> str:
    """What follows from the report's rows."""
    if finding.is_comparison:
        return "so" if finding.follows else "not so"
    if finding.recomputed is None:
        return "-"
    low, high = number_text(finding.recomputed.low), number_text(finding.recomputed.high)
    text = low if low == high else f"{low} to {high}"
    return f"{text} {escape(finding.unit)}".rstrip()


def rows_section(made: Reproduction) -> str:
    """All tables of the report as it prints them, to be unfolded."""
    doubts: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for finding in made.audit.wrong:
        if finding.key:
            said = f"{finding.text}: not so" + (f" ({finding.note})" if finding.note else "")
            doubts.setdefault((finding.table, finding.key), []).append(said)
    tables = "".join(_rows(table, doubts) for table in made.tables.values())
    return f"""<section id="rows"><h2>The report's own rows</h2>
<p>As printed; the audit and every published figure of this page are computed from them. A row in which the audit
found something is marked.</p>
{tables}</section>"""


def _rows(table: Table, doubts: Mapping[tuple[str, tuple[str, ...]], list[str]]) -> str:
    """One table as printed."""
    columns = list(dict.fromkeys(column for cells in table.rows.values() for column in cells))
    heads = "".join(
        f'<th scope="col">{escape(name.replace("_", " "))}</th>' for name in (*table.keys, *columns)
    )
    lines = []
    for key, cells in table.rows.items():
        said = list(dict.fromkeys(doubts.get((table.name, key), ())))
        note = f'<td class="words">{escape("; ".join(said))}</td>' if said else "<td></td>"
        names = "".join(f'<th scope="row">{escape(part)}</th>' for part in key)
        numbers = "".join(f"<td>{escape(cells.get(column, ''))}</td>" for column in columns)
        lines.append(f"<tr{' class=doubted' if said else ''}>{names}{numbers}{note}</tr>")
    n_doubted = sum((table.name, key) in doubts for key in table.rows)
    summary = f"{table.name.replace('_', ' ')}: {page.counted(len(table.rows), 'row')}" + (
        f", {n_doubted} in doubt" if n_doubted else ""
    )
    return (
        f'<details><summary>{escape(summary)}</summary><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(table.name)}"><table class="rows"><thead><tr>{heads}<th scope="col">audit</th></tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div></details>"
    )
