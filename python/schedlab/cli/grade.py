# SPDX-License-Identifier: MIT
"""`schedlab grade`: points for students' policies, run in the sandbox.

Exit status: 0, all submissions are graded; 1, one has fewer points than `--pass`.
Read next: grade/grade.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import EXIT_CHECK_FAILED, UsageError
from .answer import print_json, show_state
from .options import JsonOption

if TYPE_CHECKING:
    from ..grade.assignment import Assignment
    from ..grade.grade import Grades, Report


def grade(
    assignment: Annotated[Path, typer.Argument(help="The assignment, a TOML file.")],
    submissions: Annotated[
        list[Path], typer.Argument(help="The students' files: ID.bpf.c, or ID.patch, each.")
    ] = [],  # noqa: B006, Typer copies it
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
    examples: Annotated[
        bool, typer.Option(help="Look for the smallest workload on which a submission fails.")
    ] = True,
    zip_file: Annotated[
        Path | None, typer.Option("--zip", help="Only write an autograder for Gradescope, with the secret.")
    ] = None,
    wheel: Annotated[Path | None, typer.Option(help="For --zip: the wheel to install there.")] = None,
    gradescope: Annotated[
        Path | None, typer.Option(help="Grade the submission in Gradescope's folder, /autograder.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Grade students' policies in the sandbox, each on work of its own."""
    from ..files import make_folder
    from ..grade.assignment import read_assignment
    from ..grade.grade import grade as grade_all
    from ..grade.grade import read_submissions
    from ..grade.gradescope import nothing_to_grade, submission_of, write_results, write_zip
    from ..grade.outputs import as_gradescope
    from ..grade.variants import read_secret

    asked = read_assignment(assignment)
    key = read_secret(secret or assignment.parent / "secret.txt")
    if zip_file is not None:
        write_zip(asked, key, zip_file, wheel)
        print(f"wrote {zip_file}; it contains the secret")
        return
    if gradescope is not None:
        student, submissions = submission_of(gradescope)
        out, for_students = gradescope / "schedlab", True
        if len(submissions) != 1:
            write_results(gradescope, nothing_to_grade(asked, len(submissions)))
            return
    found = read_submissions(submissions, student)
    make_folder(out)
    grades = grade_all(
        asked, found, key, out, has_examples=examples, on_done=None if as_json else _show_progress
    )
    reports = grades.reports
    _write(asked, grades, out, is_student=for_students)
    if gradescope is not None:
        write_results(gradescope, as_gradescope(asked, reports[0]))
    if as_json:
        print_json({report.student: as_gradescope(asked, report) for report in reports})
    else:
        print((out / "grades.txt").read_text(encoding="utf-8"), end="")
    if pass_points is not None and any(report.points < pass_points for report in reports):
        raise typer.Exit(EXIT_CHECK_FAILED)


def _write(assignment: Assignment, grades: Grades, out: Path, *, is_student: bool) -> None:
    """All files; for a job of GitHub Actions also its summary."""
    from ..files import write_json, write_text
    from ..grade.outputs import as_csv, as_gradescope, as_junit, as_summary, as_text
    from ..grade.pages import class_page

    reports = grades.reports
    results = out / "results"
    results.mkdir(exist_ok=True)
    for report in reports:
        write_json(results / f"{report.student}.json", as_gradescope(assignment, report))
        _write_student(assignment, report, out / "students" / report.student)
    if not is_student:
        write_text(out / "class.html", class_page(assignment, reports, grades.baselines))
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


def _write_student(assignment: Assignment, report: Report, folder: Path) -> None:
    """What a student may have: the page, the submission, and the workloads on which it fails."""
    from ..files import write_text
    from ..grade.pages import example_command, example_name, student_page

    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{report.student}{assignment.suffix}").write_bytes(report.submission.text)
    for number, example in enumerate(report.examples, 1):
        head = f"# {example.text.splitlines()[0]}\n# {example_command(report, example, number)}\n"
        write_text(folder / example_name(number), head + example.toml)
    write_text(folder / "index.html", student_page(assignment, report))


def _show_progress(student: str, n_done: int, n_all: int) -> None:
    """What is shown meanwhile."""
    show_state(f"{n_done} of {n_all}: {student}", is_last=n_done == n_all)
