# SPDX-License-Identifier: MIT
"""docs/replication.md: a page of summary, then the verdicts of a dated run, a section per report.

Must stay true: a section is replaced as a whole, with its date and its command;
sections of reports that were not run this time stay as they are.
Read next: steps.py, where the verdicts come from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from schedlab.errors import UsageError

from .claims import Decision
from .fit import fit
from .reproduction import Reproduction
from .summary import sentences_of
from .text import command_text, count_sentences, interval_text, ours_text, published_text

HEAD = """# Which conclusions of the five reports hold

Each claim of a report, as decided by a run of its experiment: the published figure, ours
with its 95 % interval, and a verdict that follows from the two.
[experiments/README.md](../experiments/README.md) says how, and how to change a row.
`schedlab reproduce N` runs a report again and writes a page that says all of this at length,
with the report's tables and charts beside ours. This page is written by the command that
each section names; a test compares it with a quick run.
"""
SUMMARY_HEADING = "## The five reports in one page"
BEGIN, END = "<!-- report {} -->", "<!-- end of report {} -->"
SUMMARY_BEGIN, SUMMARY_END = "<!-- summary of report {} -->", "<!-- end of summary of report {} -->"
_SECTION = re.compile(r"<!-- report (\d+) -->\n.*?<!-- end of report \1 -->\n", re.DOTALL)
_SUMMARY = re.compile(
    r"<!-- summary of report (\d+) -->\n.*?<!-- end of summary of report \1 -->\n", re.DOTALL
)
COLUMNS = ("claim", "what it says", "where", "published", "run on", "ours", "95 % interval", "verdict")


def write_replication(made: Sequence[Reproduction], path: Path, *, today: date) -> None:
    """Put reports that were reproduced into the page."""
    text = path.read_text(encoding="utf-8") if path.is_file() else HEAD
    for each in made:
        number = each.experiment.report
        for begin, body, end in (
            (SUMMARY_BEGIN, summary_text(each), SUMMARY_END),
            (BEGIN, section_text(each, today=today), END),
        ):
            first, last = begin.format(number), end.format(number)
            new = f"{first}\n{body}{last}\n"
            old = re.compile(f"{re.escape(first)}\n.*?{re.escape(last)}\n", re.DOTALL)
            text = old.sub(new.replace("\\", r"\\"), text) if old.search(text) else f"{text}\n{new}"
    try:
        path.write_text(_in_order(text), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--write {path}: cannot be written: {error.strerror}") from error


def _in_order(text: str) -> str:
    """Summaries, then sections, each by number, whatever order they were made in."""
    summaries, sections = (
        sorted(pattern.finditer(text), key=lambda match: int(match[1])) for pattern in (_SUMMARY, _SECTION)
    )
    head = _SECTION.sub("", _SUMMARY.sub("", text)).replace(SUMMARY_HEADING, "").rstrip("\n")
    parts = [
        head,
        *([SUMMARY_HEADING] if summaries else []),
        *(match[0].rstrip("\n") for match in (*summaries, *sections)),
    ]
    return "\n\n".join(parts) + "\n"


def summary_text(made: Reproduction) -> str:
    """Write what a report's main conclusion came to, and why, with its counts."""
    experiment = made.experiment
    sentences = sentences_of(made, "main")[0] or sentences_of(made, "answer")[0][:2]
    on = (
        f"Decided on {experiment.runs[experiment.primary].title}. "
        if experiment.primary in made.samples.done
        else ""
    )
    return (
        f"**{experiment.title}.** It concludes: {experiment.concludes}\n\n"
        f"What it came to: {' '.join(sentences)}\n\n"
        f"{on}{' '.join(count_sentences(made))} {made.audit.sentence}\n"
    )


def section_text(made: Reproduction, *, today: date) -> str:
    """Write the section of a report."""
    experiment, audit = made.experiment, made.audit
    titles = "; ".join(
        f"`{name}` is {runs.title}" for name, runs in experiment.runs.items() if name in made.samples.done
    )
    lines = [
        f"## {experiment.title}", "", experiment.question, "",
        f"Made on {today.isoformat()} by `{command_text(made)} --write docs/replication.md`. {audit.sentence.removesuffix('.')} "
        f"(`./lab audit {experiment.report}`). {' '.join(count_sentences(made))}",
        "", f"Sets of runs: {titles}. {_primary_text(made)}", "", *_table(made.chosen),
    ]  # fmt: skip
    if made.others:
        lines += [
            "",
            "The same claims on further sets of runs: how far a result hangs on the machine and on what was assumed. "
            "These are no votes.",
            "",
            *_table(made.others),
        ]
    return "\n".join(lines) + "\n"


def _primary_text(made: Reproduction) -> str:
    """Which set decides, why, and how near each candidate comes to the published numbers."""
    experiment = made.experiment
    if not experiment.primary:
        return ""
    found = fit(experiment, made.tables, made.samples)
    near = ", ".join(f"`{each.on}` {each.factor:.3g}" for each in found)
    fits = f" Half of the report's numbers are nearer to ours than this factor: {near}." if found else ""
    return f"Claims are decided on `{experiment.primary}` where they name it. {experiment.primary_why}{fits}"


def _table(decisions: Sequence[Decision]) -> list[str]:
    """Rows of decisions, below their heads."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    for decision in decisions:
        claim = decision.claim
        cells = (f"`{claim.name}`", claim.text, claim.where, published_text(decision) + step_text(decision),
                 f"`{decision.on}`" if decision.on else "-", ours_text(decision), interval_text(decision),
                 decision.verdict)  # fmt: skip
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return lines


def step_text(decision: Decision) -> str:
    """Write the smallest step of the report's instrument; empty where none is stated."""
    return f"; step {decision.resolution:.4g}" if decision.resolution else ""
