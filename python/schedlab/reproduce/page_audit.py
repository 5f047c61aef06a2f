# SPDX-License-Identifier: MIT
"""The audit on the page of a reproduced report: its figures against its own rows.

What does not follow stands first, equal checks together; all rows that the report
prints can be unfolded at the end of the page, those in doubt marked.

Must stay true: every text that comes from a file is escaped.
Read next: audit.py, which recomputes; page.py, the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from ..report import pieces as page
from .audit import Finding, Table
from .reproduction import Reproduction
from .text import number_text

#: From this many findings on, a check has a heading and its findings one line each.
MANY = 3


def audit_section(made: Reproduction) -> str:
    """Figures that do not follow from the report's own rows; the others on demand.

    Parameters
    ----------
    made : Reproduction
        With its audit.

    Returns
    -------
    str
        HTML.
    """
    audit = made.audit
    wrong = audit.wrong
    right = [finding for finding in audit.findings if finding.follows]
    total = page.nr(len(audit.findings), "figure")
    text = (f"A report measures some numbers and derives others from them: means, percentages, ratios, what is the "
            f"largest, and that each mean stands for its runs. Here {total} that this one derives were computed anew from its own tables. "
            f"{_count(len(wrong), len(audit.findings))} not follow from them, however the numbers were rounded when they "
            "were printed. Nothing was run for this: it is the report against itself.")  # fmt: skip
    folded = ""
    if right:
        folded = (f"<details><summary>The {len(right):,} that follow</summary>"
                  f"{_findings(right, made)}</details>")  # fmt: skip
    return f"""<section id="audit">
<h2>Audit: do its figures follow from its own rows?</h2>
<p>{escape(text)}</p>
{_findings(wrong, made) if wrong else ""}
{folded}
</section>"""


def _count(number: int, total: int) -> str:
    """How many do not, as the beginning of a sentence."""
    if number == 0:
        return "All of them do" if total > 1 else "It does"
    return f"{number} do" if number > 1 else "One does"


def _findings(findings: Sequence[Finding], made: Reproduction) -> str:
    """A table of audited figures, equal checks below one heading."""
    tables, totals = made.tables, Counter(finding.text for finding in made.audit.findings)
    checks: dict[str, list[Finding]] = {}
    for finding in findings:
        checks.setdefault(finding.text, []).append(finding)
    rows = [_finding(finding, tables, f"{escape(text)}{_note(finding.note)}")
            for text, mine in checks.items() if len(mine) < MANY for finding in mine]  # fmt: skip
    for text, mine in checks.items():
        if len(mine) < MANY:
            continue
        notes = {finding.note for finding in mine}
        common = notes.pop() if len(notes) == 1 else ""
        # Rows that repeat another are all that such a check finds.
        of = "" if mine[0].kind == "repeats" else f" of {totals[text]:,}"
        verdict = f"{'so' if mine[0].follows else 'not so'} in {len(mine):,}{of}"
        rows.append(f'<tr class="check"><th scope="rowgroup" colspan="4">{escape(text)}: {verdict}{_note(common)}</th></tr>')
        rows += [_finding(finding, tables, "" if common else _note(finding.note)) for finding in mine]
    return ('<div class="scroll" tabindex="0" role="region" aria-label="Figures of the report, computed anew">'
            '<table class="words audit"><thead><tr><th scope="col">where</th><th scope="col">what is said</th>'
            '<th scope="col" class="number">published</th><th scope="col" class="number">from its own rows</th></tr>'
            f"</thead><tbody>{''.join(rows)}</tbody></table></div>")  # fmt: skip


def _finding(finding: Finding, tables: dict[str, Table], said: str) -> str:
    """A row of such a table."""
    place = escape(place_text(finding, tables))
    return (f"<tr><td>{place}</td><td>{said}</td>" if said else f'<tr><td colspan="2">{place}</td>') + (
        f'<td class="number" data-label="published">{escape(finding.published)}</td>'
        f'<td class="number" data-label="from its own rows">{_recomputed(finding)}</td></tr>')  # fmt: skip


def _note(text: str) -> str:
    """What a reader should know."""
    return f' <span class="soft">({escape(text)})</span>' if text else ""


def place_text(finding: Finding, tables: dict[str, Table]) -> str:
    """Say where a finding is, with the names of numbers.

    Parameters
    ----------
    finding : Finding
        One of an audit.
    tables : dict of str to Table
        The report's own.

    Returns
    -------
    str
        Such as `"appendix A, FIFO, cpu, processes 5, run 3"`.
    """
    if not finding.key:
        return finding.where
    words = [part if not part.replace(".", "").isdigit() else f"{name} {part}"
             for name, part in zip(tables[finding.table].keys, finding.key, strict=True)]  # fmt: skip
    section, _, rest = finding.where.partition(" ".join(finding.key))
    return ", ".join([section.rstrip(", "), *words]) + rest


def _recomputed(finding: Finding) -> str:
    """What follows from the report's rows."""
    if finding.kind == "order":
        return "so" if finding.follows else "not so"
    if finding.recomputed is None:
        return "-"
    low, high = number_text(finding.recomputed.low), number_text(finding.recomputed.high)
    text = low if low == high else f"{low} to {high}"
    return f"{text} {escape(finding.unit)}".rstrip()


def rows_section(made: Reproduction) -> str:
    """All tables of the report as it prints them, to be unfolded.

    Parameters
    ----------
    made : Reproduction
        With its tables.

    Returns
    -------
    str
        HTML; rows that an audit found something in are marked, and say what.
    """
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


def _rows(table: Table, doubts: dict) -> str:
    """One table as printed."""
    columns = list(dict.fromkeys(column for cells in table.rows.values() for column in cells))
    heads = "".join(f'<th scope="col">{escape(name.replace("_", " "))}</th>' for name in (*table.keys, *columns))
    lines = []
    for key, cells in table.rows.items():
        said = list(dict.fromkeys(doubts.get((table.name, key), ())))
        note = f'<td class="words">{escape("; ".join(said))}</td>' if said else "<td></td>"
        names = "".join(f'<th scope="row">{escape(part)}</th>' for part in key)
        numbers = "".join(f"<td>{escape(cells.get(column, ''))}</td>" for column in columns)
        lines.append(f"<tr{' class=doubted' if said else ''}>{names}{numbers}{note}</tr>")
    nr_doubted = sum((table.name, key) in doubts for key in table.rows)
    summary = f"{table.name.replace('_', ' ')}: {page.nr(len(table.rows), 'row')}" + (f", {nr_doubted} in doubt" if nr_doubted else "")
    return (f'<details><summary>{escape(summary)}</summary><div class="scroll" tabindex="0" role="region" '
            f'aria-label="{escape(table.name)}"><table class="rows"><thead><tr>{heads}<th scope="col">audit</th></tr></thead>'
            f"<tbody>{''.join(lines)}</tbody></table></div></details>")  # fmt: skip
