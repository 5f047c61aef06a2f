# SPDX-License-Identifier: MIT
"""Grades as files: for Gradescope, for a table, for continuous integration, and for people.

        results.json    Gradescope: score, tests with visibility, leaderboard
        grades.csv      a row per student
        junit.xml       a suite per student
        summary.md      what a job of GitHub Actions shows
        grades.txt      as teachers of MIT's 6.1810 are used to it

Invariant: what is for students says nothing of a hidden test but its points.
Read next: pages.py; cli/grade.py.
"""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as xml
from collections.abc import Sequence
from typing import Any

from ..runs.junit import as_file, suite_of
from .assignment import Assignment
from .decide import Outcome, Part
from .grade import Report


def show_points(points: float) -> str:
    """Points without needless zeros."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def seen(outcome: Outcome, *, is_student: bool) -> list[str]:
    """Lines about a test: what was found on each workload, for a student without what is hidden."""
    if is_student and outcome.is_hidden:
        return []
    lines = [_line(outcome, part, is_student) for part in outcome.parts]
    return list(dict.fromkeys(lines))


def _line(outcome: Outcome, part: Part, is_student: bool) -> str:
    if is_student and part.is_hidden:
        how = {None: "fails", 0: "passes"}.get(part.level, "passes in part")
        return f"on a hidden workload: {how}"
    where = f"{part.workload}: " if part.workload else ""
    return f"{where}{part.text}"


def word_of(outcome: Outcome) -> str:
    """`OK`, `PART` or `FAIL`."""
    return "OK" if outcome.is_full else "PART" if outcome.points > 0 else "FAIL"


def as_gradescope(assignment: Assignment, report: Report) -> dict[str, Any]:
    """What Gradescope reads as `results.json`. Its keys are those of the autograder specification."""
    tests = [
        {
            "name": outcome.test.name,
            "score": outcome.points,
            "max_score": outcome.test.points,
            "status": "passed" if outcome.is_full else "failed",
            # Also in a test that is seen, hidden workloads stay so.
            "output": "\n".join(seen(outcome, is_student=not outcome.is_hidden)),
            "visibility": "hidden" if outcome.is_hidden else "visible",
        }
        for outcome in report.outcomes
    ]
    board: list[dict[str, Any]] = [{"name": "Points", "value": report.points, "order": "desc"}]
    cost = cost_of(report)
    if cost is not None:
        board.append({"name": "Instructions per decision", "value": round(cost, 1), "order": "asc"})
    return {
        "score": report.points,
        "execution_time": max(1, round(report.seconds)),
        "output": "\n".join(
            [
                f"{assignment.title}: {show_points(report.points)} of {show_points(assignment.points)} points",
                *([report.error] if report.error else []),
            ]
        ),
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "leaderboard": board,
    }


def cost_of(report: Report) -> float | None:
    """Instructions of the policy's own code per decision, over all runs; None without a good one."""
    costs = [fact.cost for fact in report.facts if fact.cost]
    return sum(cost[0] for cost in costs) / sum(cost[1] for cost in costs) if costs else None


def as_csv(assignment: Assignment, reports: Sequence[Report]) -> str:
    """A row per student: points in all and of each test, instructions per decision, and the first error."""
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    names = [test.name for test in assignment.tests]
    table.writerow(["student", "points", "of", *names, "instructions per decision", "lines", "error"])
    for report in reports:
        cost = cost_of(report)
        points = [show_points(outcome.points) for outcome in report.outcomes]
        error = report.error or next((fact.error for fact in report.facts if fact.error), None) or ""
        row = [report.student, show_points(report.points), show_points(assignment.points), *points]
        table.writerow(
            [*row, "" if cost is None else f"{cost:.1f}", report.n_lines, error.partition("\n")[0]]
        )
    return file.getvalue()


def as_text(assignment: Assignment, report: Report, *, is_student: bool) -> str:
    """Lines as the graders of MIT's course print them."""
    lines = [f"{report.submission.path.name}: {assignment.title}", *(report.error or "").splitlines()]
    for outcome in report.outcomes:
        if is_student and outcome.is_hidden:
            continue
        lines.append(f"== Test {outcome.test.name} == {word_of(outcome)} ({_of(outcome)})")
        if not outcome.is_full:
            lines += [
                f"    {line}" for text in seen(outcome, is_student=is_student) for line in text.splitlines()
            ]
    if is_student and (hidden := [outcome for outcome in report.outcomes if outcome.is_hidden]):
        points, most = sum(each.points for each in hidden), sum(each.test.points for each in hidden)
        lines.append(f"== Hidden tests == ({show_points(points)}/{show_points(most)})")
    lines.append(f"Score: {show_points(report.points)}/{show_points(assignment.points)}")
    return "\n".join(lines) + "\n"


def _of(outcome: Outcome) -> str:
    return f"{show_points(outcome.points)}/{show_points(outcome.test.points)}"


def as_junit(assignment: Assignment, reports: Sequence[Report], *, is_student: bool) -> str:
    """JUnit XML: a suite per student, a case per test; one with a part of its points fails."""
    root = xml.Element("testsuites", name=assignment.title)
    for report in reports:
        # Times are of the submission: runs serve several tests.
        cases = [
            (report.student, outcome.test.name, None if outcome.is_full else
             (f"{_of(outcome)} points", report.error or "\n".join(seen(outcome, is_student=is_student))))
            for outcome in report.outcomes
            if not (is_student and outcome.is_hidden)
        ]  # fmt: skip
        root.append(suite_of(report.student, cases, seconds=report.seconds))
    return as_file(root)


def as_summary(assignment: Assignment, reports: Sequence[Report], *, is_student: bool) -> str:
    """Markdown that a job of GitHub Actions shows: a table per student, as all may read it."""
    lines = [f"## {_cell(assignment.title)}", ""]
    for report in reports:
        lines += [
            f"### {_cell(report.student)}: {show_points(report.points)} of {show_points(assignment.points)} points",
            "",
            *([_cell(report.error), ""] if report.error else []),
            "| test | points | what was seen |",
            "|---|---|---|",
        ]
        for outcome in report.outcomes:
            if not (is_student and outcome.is_hidden):
                text = "" if outcome.is_full else "; ".join(seen(outcome, is_student=is_student))
                lines.append(f"| {_cell(outcome.test.name)} | {_of(outcome)} | {_cell(text)} |")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """A text in a cell of a table: what a submission makes a compiler say is no markup."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("`", "\\`")
    return " ".join(escaped.split())[:500]
