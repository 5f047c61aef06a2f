# SPDX-License-Identifier: MIT
"""A page for each student, and one of the class.

        students/ID/index.html      points and reasons, counter-examples with their pictures
        students/ID/example-1.toml  a counter-example, for the command that the page names
        class.html                  who passed what, the distribution, decisions that are alike

Each page is one file that loads nothing and runs no script: what a submission or a compiler
says is text. They are templates/student.html and class.html. The class page is for the teacher alone.

Invariant: a student's page has no word about a hidden workload but whether it passed.
Read next: cli/grade.py.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import combinations

from markupsafe import Markup

from ..html import render
from .assignment import Assignment
from .example import Example
from .grade import SUFFIX, Report
from .outputs import cost_of, seen, show_points, word_of
from .runs import MARKS, Fact
from .variants import COMMON

#: Decisions of two submissions are called alike from this part on.
ALIKE = 0.95
BINS = 10


def example_name(number: int) -> str:
    """File of a student's counter-example, counted from 1."""
    return f"example-{number}.toml"


def example_command(report: Report, example: Example, number: int) -> str:
    """What repeats a counter-example, in the folder of the student's page."""
    words = ["schedlab", "run", example_name(number), "-p", f"./{report.student}{SUFFIX}", "--cpus",
             str(example.n_cpus), "--seed", str(example.seed), "--sandbox", "--out", f"run-{number}"]  # fmt: skip
    return shlex.join(words)


def student_page(assignment: Assignment, report: Report) -> str:
    """Write the page of a student."""
    hidden = [outcome for outcome in report.outcomes if outcome.is_hidden]
    rows = [
        (each, word_of(each), seen(each, is_student=True)) for each in report.outcomes if not each.is_hidden
    ]
    return render(
        "student.html",
        title=f"{report.student}: {assignment.title}",
        points=show_points,
        report=report,
        most=assignment.points,
        rows=rows,
        hidden=(sum(each.points for each in hidden), sum(each.test.points for each in hidden))
        if hidden
        else None,
        cost=cost_of(report),
        examples=[
            (each, Markup(each.svg), example_name(number), example_command(report, each, number))
            for number, each in enumerate(report.examples, 1)
        ],
    )


# ---- the class --------------------------------------------------------------------


def class_page(
    assignment: Assignment, reports: Sequence[Report], baselines: Mapping[str, Sequence[Fact]]
) -> str:
    """Write the page of the class, with all that is hidden from students; `baselines` are other policies' facts."""
    points = sorted(report.points for report in reports)
    counts = [0] * BINS
    for value in points:
        counts[min(BINS - 1, int(BINS * value / assignment.points)) if assignment.points else 0] += 1
    return render(
        "class.html",
        title=f"{assignment.title}: the class",
        points=show_points,
        all_points=points,
        most=assignment.points,
        bins=[
            (n, round(assignment.points * i / BINS, 1), 100 * n / max(counts)) for i, n in enumerate(counts)
        ],
        tests=[
            (test.name, sum(report.outcomes[number].is_full for report in reports))
            for number, test in enumerate(assignment.tests)
        ],
        rows=[(report, [(each.points, word_of(each)) for each in report.outcomes]) for report in reports],
        alike=_alike(reports, baselines),
        alike_from=ALIKE,
    )


def similarity(one: Sequence[Fact], other: Sequence[Fact]) -> float | None:
    """Mean part of decisions, over all workloads' common variants, that two policies both made; None without any.

    Estimated from the `MARKS` smallest hashes of both (Broder, "On the resemblance and
    containment of documents", 1997).
    """
    marks = [
        {fact.workload: fact.marks for fact in facts if fact.variant == COMMON and fact.marks}
        for facts in (one, other)
    ]
    shares = []
    for name in marks[0].keys() & marks[1].keys():
        a, b = set(marks[0][name]), set(marks[1][name])
        union = sorted(a | b)[:MARKS]
        shares.append(sum(mark in a and mark in b for mark in union) / len(union))
    return sum(shares) / len(shares) if shares else None


def _alike(
    reports: Sequence[Report], baselines: Mapping[str, Sequence[Fact]]
) -> list[tuple[float, str, str, list[str]]]:
    """Submissions whose decisions are alike, those that agree most first, and what decides as they do."""
    found = []
    for one, other in combinations(reports, 2):
        part = similarity(one.facts, other.facts)
        if part is not None and part >= ALIKE:
            found.append((part, one, other))
    return [
        (
            part,
            one.student,
            other.student,
            [
                name.rpartition("/")[2]
                for name, facts in baselines.items()
                if (similarity(one.facts, facts) or 0) >= ALIKE
            ],
        )
        for part, one, other in sorted(found, key=lambda row: -row[0])[:100]
    ]
