# SPDX-License-Identifier: MIT
"""`schedlab grade`: points for students' policies, run in the sandbox.

Exit status: 0, all submissions are graded; 1, one has fewer points than `--pass`.
Read next: grade/grade.py.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import EXIT_CHECK_FAILED, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..grade.assignment import Assignment
    from ..grade.grade import Report


def register(app: typer.Typer) -> None:
    """Add the command to the command line.

    Parameters
    ----------
    app : typer.Typer
        The program `schedlab`.
    """
    app.command()(grade)


def grade(
    assignment: Annotated[Path, typer.Argument(help="The assignment, a TOML file.")],
    submissions: Annotated[list[Path], typer.Argument(help="The students' C files: ID.bpf.c each.")],
    secret: Annotated[
        Path | None,
        typer.Option(help="What students' work is drawn from; default: secret.txt beside the assignment."),
    ] = None,
    student: Annotated[str | None, typer.Option(help="Id of the student, where there is one file.")] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for grades; what is done there is not done again.")
    ] = Path("out/grade"),
    pass_points: Annotated[
        float | None, typer.Option("--pass", min=0, help="Exit with 1 where a submission has fewer points.")
    ] = None,
    for_students: Annotated[
        bool, typer.Option("--for-students", help="Show nothing of what is hidden, as in their own jobs.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Grade students' policies in the sandbox, each on work of its own."""
    from ..grade.assignment import read_assignment
    from ..grade.grade import grade as grade_all
    from ..grade.grade import read_submissions
    from ..grade.outputs import as_gradescope
    from ..grade.variants import read_secret
    from ..runs.case import make_folder

    asked = read_assignment(assignment)
    found = read_submissions(submissions, student)
    key = read_secret(secret or assignment.parent / "secret.txt")
    make_folder(out)
    reports = grade_all(asked, found, key, out, on_done=_progress(as_json))
    _write(asked, reports, out, is_student=for_students)
    if as_json:
        print(json.dumps({report.student: as_gradescope(asked, report) for report in reports}))
    else:
        print((out / "grades.txt").read_text(encoding="utf-8"), end="")
    if pass_points is not None and any(report.points < pass_points for report in reports):
        raise typer.Exit(EXIT_CHECK_FAILED)


def _write(assignment: Assignment, reports: list[Report], out: Path, *, is_student: bool) -> None:
    """All files; for a job of GitHub Actions also its summary."""
    from ..grade.outputs import as_csv, as_gradescope, as_junit, as_summary, as_text
    from ..runs.case import write_text

    results = out / "results"
    results.mkdir(exist_ok=True)
    for report in reports:
        text = json.dumps(as_gradescope(assignment, report), indent=1, allow_nan=False)
        write_text(results / f"{report.student}.json", text + "\n")
    summary = as_summary(assignment, reports, is_student=is_student)
    texts = [as_text(assignment, report, is_student=is_student) for report in reports]
    write_text(out / "grades.txt", "\n".join(texts))
    write_text(out / "grades.csv", as_csv(assignment, reports))
    write_text(out / "junit.xml", as_junit(assignment, reports, is_student=is_student))
    write_text(out / "summary.md", summary)
    if job := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with open(job, "a", encoding="utf-8") as file:
                file.write(summary)
        except OSError as error:
            raise UsageError(f"GITHUB_STEP_SUMMARY={job}: {error.strerror}") from error


def _progress(as_json: bool) -> Callable[[str, int, int], None] | None:
    """What is shown meanwhile, to a person only."""
    if as_json or not sys.stderr.isatty():
        return None

    def show(student: str, nr_done: int, nr_all: int) -> None:
        end = "\n" if nr_done == nr_all else ""
        print(f"\r\033[K{nr_done} of {nr_all}: {student}", end=end, file=sys.stderr, flush=True)

    return show
