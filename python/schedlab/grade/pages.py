# SPDX-License-Identifier: MIT
"""A page for each student, and one of the class.

        students/ID/index.html      points and reasons, counter-examples with their pictures
        students/ID/example-1.toml  a counter-example, for the command that the page names
        class.html                  who passed what, the distribution, decisions that are alike

Each page is one file that loads nothing and runs no script: what a submission or a compiler
says is text. The class page is for the teacher alone.

Invariant: a student's page has no word about a hidden workload but whether it passed.
Read next: cli/grade.py.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations

from .assignment import Assignment
from .decide import Outcome
from .example import Example
from .grade import SUFFIX, Report
from .outputs import cost_of, seen, show_points, word_of
from .runs import MARKS, Fact
from .variants import COMMON

#: Decisions of two submissions are called alike from this part on.
ALIKE = 0.95
_BINS = 10
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --good: #00704f; --part: #9a6200; --bad: #b3261e; --line: #8884; }
@media (prefers-color-scheme: dark) { :root { --good: #4fc99c; --part: #e6ad45; --bad: #ff8a80; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem; }
table { border-collapse: collapse; } th, td { text-align: left; vertical-align: top; padding: .3rem .6rem;
border-bottom: 1px solid var(--line); } td.points { white-space: nowrap; text-align: right; }
.OK { color: var(--good); } .PART { color: var(--part); } .FAIL { color: var(--bad); }
.wide { overflow-x: auto; } pre { overflow-x: auto; padding: .6rem; border: 1px solid var(--line); }
svg { max-width: 100%; height: auto; } .bar { fill: #0072b2; }
"""


def _page(title: str, body: Sequence[str]) -> str:
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            *body,
            "</body></html>\n",
        ]
    )


def example_name(number: int) -> str:
    """File of a student's counter-example, counted from 1."""
    return f"example-{number}.toml"


def example_command(report: Report, example: Example, number: int) -> str:
    """What repeats a counter-example, in the folder of the student's page."""
    words = ["schedlab", "run", example_name(number), "-p", f"./{report.student}{SUFFIX}", "--cpus",
             str(example.nr_cpus), "--seed", str(example.seed), "--sandbox", "--out", f"run-{number}"]  # fmt: skip
    return shlex.join(words)


def student_page(assignment: Assignment, report: Report) -> str:
    """Write the page of a student.

    Parameters
    ----------
    assignment : Assignment
        What was asked.
    report : Report
        What the submission is worth.

    Returns
    -------
    str
        HTML.
    """
    title = f"{report.student}: {assignment.title}"
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p><strong>{show_points(report.points)} of {show_points(assignment.points)} points</strong></p>",
    ]
    if report.error:
        body += ["<h2>It does not compile</h2>", f"<pre>{escape(report.error)}</pre>"]
    hidden = [outcome for outcome in report.outcomes if outcome.is_hidden]
    rows = [_row(outcome) for outcome in report.outcomes if not outcome.is_hidden]
    if hidden:
        points, most = sum(each.points for each in hidden), sum(each.test.points for each in hidden)
        rows.append(
            f'<tr><td>Hidden tests</td><td class="points">{show_points(points)}/{show_points(most)}</td><td></td></tr>'
        )
    body += [
        '<h2>Tests</h2><div class="wide"><table><tr><th>test</th><th>points</th><th>what was seen</th></tr>',
        *rows,
        "</table></div>",
    ]
    cost = cost_of(report)
    if cost is not None:
        body.append(
            f"<p>The policy's own code takes {cost:,.0f} instructions per decision, and has {report.nr_lines} lines.</p>"
        )
    for number, example in enumerate(report.examples, 1):
        body += _example(report, example, number)
    return _page(title, body)


def _row(outcome: Outcome) -> str:
    text = "<br>".join(escape(line) for line in seen(outcome, is_student=True))
    about = f"<br><small>{escape(outcome.test.about)}</small>" if outcome.test.about else ""
    return (
        f"<tr><td>{escape(outcome.test.name)}{about}</td>"
        f'<td class="points {word_of(outcome)}">{show_points(outcome.points)}/{show_points(outcome.test.points)} '
        f"{word_of(outcome)}</td><td>{text}</td></tr>"
    )


def _example(report: Report, example: Example, number: int) -> list[str]:
    name = example_name(number)
    return [
        f"<h2>Counter-example {number}: {escape(example.test)}</h2>",
        f"<p>The smallest workload that was found on which it fails so: {escape(example.text)}.</p>",
        *(
            [
                f'<div class="wide">{example.svg}</div>',
                "<p>Colour: the task runs, each CPU with its own; grey: it waits for a CPU.</p>",
            ]
            if example.svg
            else []
        ),
        "<p>Repeat it:</p>",
        f"<pre>{escape(example_command(report, example, number))}</pre>",
        f"<details><summary>{name}</summary><pre>{escape(example.toml)}</pre></details>",
    ]


# ---- the class --------------------------------------------------------------------


def class_page(
    assignment: Assignment, reports: Sequence[Report], baselines: Mapping[str, Sequence[Fact]]
) -> str:
    """Write the page of the class, with all that is hidden from students.

    Parameters
    ----------
    assignment : Assignment
        What was asked.
    reports : sequence of Report
        Of all submissions.
    baselines : mapping of str to sequence of Fact
        Of other policies, by name.

    Returns
    -------
    str
        HTML.
    """
    points = sorted(report.points for report in reports)
    middle = points[len(points) // 2]
    head = "".join(f"<th>{escape(test.name)}</th>" for test in assignment.tests)
    rows = []
    for report in reports:
        cells = "".join(
            f'<td class="points {word_of(outcome)}">{show_points(outcome.points)}</td>'
            for outcome in report.outcomes
        )
        link = f'<a href="students/{escape(report.student)}/index.html">{escape(report.student)}</a>'
        rows.append(f'<tr><td>{link}</td><td class="points">{show_points(report.points)}</td>{cells}</tr>')
    passed = [
        f"<tr><td>{escape(test.name)}</td>"
        f'<td class="points">{sum(report.outcomes[number].is_full for report in reports)} of {len(reports)}</td></tr>'
        for number, test in enumerate(assignment.tests)
    ]
    body = [
        f"<h1>{escape(assignment.title)}: the class</h1>",
        f"<p>{len(reports)} submissions, {show_points(points[0])} to {show_points(points[-1])} of "
        f"{show_points(assignment.points)} points, {show_points(middle)} in the middle.</p>",
        _histogram(points, assignment.points),
        '<h2>Tests passed whole</h2><div class="wide"><table>', *passed, "</table></div>",
        '<h2>Submissions</h2><div class="wide"><table>',
        f"<tr><th>student</th><th>points</th>{head}</tr>", *rows, "</table></div>",
        *_alike(reports, baselines),
    ]  # fmt: skip
    return _page(f"{assignment.title}: the class", body)


def _histogram(points: Sequence[float], most: float) -> str:
    """How many submissions have how many points."""
    counts = [0] * _BINS
    for value in points:
        counts[min(_BINS - 1, int(_BINS * value / most)) if most else 0] += 1
    parts = ['<svg viewBox="0 0 500 150" width="500" height="150" role="img" font-size="12" font-family="sans-serif">',
             "<title>Distribution of points</title>"]  # fmt: skip
    for number, count in enumerate(counts):
        height = 100 * count / max(counts)
        x = 50 * number
        parts.append(
            f'<rect class="bar" x="{x + 4}" y="{115 - height:.0f}" width="42" height="{height:.0f}"/>'
        )
        if count:
            parts.append(
                f'<text x="{x + 25}" y="{111 - height:.0f}" text-anchor="middle" fill="currentColor">{count}</text>'
            )
        label = show_points(round(most * number / _BINS, 1))
        parts.append(f'<text x="{x + 4}" y="132" fill="currentColor">{label}</text>')
    return "".join([*parts, "</svg>"])


def similarity(one: Sequence[Fact], other: Sequence[Fact]) -> float | None:
    """How much of the decisions of two policies is the same.

    Parameters
    ----------
    one, other : sequence of Fact
        Of their runs.

    Returns
    -------
    float or None
        Of the common variants of all workloads, the mean part of decisions that both have
        made, from 0 to 1; None where they have no good run in common.

    Notes
    -----
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


def _alike(reports: Sequence[Report], baselines: Mapping[str, Sequence[Fact]]) -> list[str]:
    """Submissions whose decisions are alike, those that agree most first."""
    found = []
    for one, other in combinations(reports, 2):
        part = similarity(one.facts, other.facts)
        if part is not None and part >= ALIKE:
            found.append((part, one, other))
    if not found:
        return ["<h2>Decisions that are alike</h2><p>No two submissions decide alike.</p>"]
    rows = []
    for part, one, other in sorted(found, key=lambda row: -row[0])[:100]:
        as_others = [
            name.rpartition("/")[2]
            for name, facts in baselines.items()
            if (similarity(one.facts, facts) or 0) >= ALIKE
        ]
        note = f"as does {', '.join(as_others)}" if as_others else ""
        rows.append(
            f"<tr><td>{escape(one.student)}</td><td>{escape(other.student)}</td>"
            f'<td class="points">{100 * part:.0f} %</td><td>{escape(note)}</td></tr>'
        )
    return [
        f"<h2>Decisions that are alike</h2><p>On the work that all have in common, these decide alike in at least "
        f"{100 * ALIKE:.0f} % of the cases: which task begins where and when. That is a hint, no proof: two that follow the same "
        "description well may decide alike. Compare their sources.</p>",
        '<div class="wide"><table><tr><th></th><th></th><th>alike</th><th></th></tr>', *rows, "</table></div>",
    ]  # fmt: skip
