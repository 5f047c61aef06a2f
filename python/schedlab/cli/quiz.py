# SPDX-License-Identifier: MIT
"""`schedlab quiz`: questions about schedulers for a classroom, with answers and reasons.

Read next: grade/quiz.py.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError
from .options import split_names


class Format(StrEnum):
    """How a quiz is written."""

    TEXT = "text"
    JSON = "json"
    MOODLE = "moodle"


def quiz(
    questions: Annotated[int, typer.Option("--questions", "-n", help="How many.")] = 4,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal questions.")] = 1,
    kind: Annotated[
        list[str],
        typer.Option(
            "--kind", help="turnaround, response, gantt, level; with commas between; default: all in turn."
        ),
    ] = [],  # noqa: B006, Typer copies it
    form: Annotated[Format, typer.Option("--format", help="Text, JSON, or XML for Moodle.")] = Format.TEXT,
    answers: Annotated[bool, typer.Option(help="Write the answers with their reasons.")] = True,
    out: Annotated[Path | None, typer.Option(help="File to write; default: standard output.")] = None,
) -> None:
    """Draw questions about small task sets, with answers from the simulator."""
    from ..files import write_asked
    from ..grade.quiz import draw_quiz
    from ..grade.quiz_formats import as_json, as_moodle, as_text

    if form is Format.MOODLE and not answers:
        raise UsageError("--no-answers: Moodle marks the answers itself, and so needs them; leave it out")
    drawn = draw_quiz(n_questions=questions, seed=seed, kinds=split_names(kind))
    if form is Format.MOODLE:
        text = as_moodle(drawn, seed=seed)
    elif form is Format.JSON:
        text = as_json(drawn, seed=seed, has_answers=answers)
    else:
        text = as_text(drawn, has_answers=answers)
    if out is None:
        print(text, end="")
        return
    write_asked("--out", out, text)
    print(f"wrote {out}, {questions} questions")
