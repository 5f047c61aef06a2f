# SPDX-License-Identifier: MIT
"""A quiz as text, as JSON, and as Moodle XML.

The last is what docs.moodle.org describes as "Moodle XML format": numbers are `numerical`
questions, names `shortanswer`; reasons are the general feedback.

Read next: cli/quiz.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from xml.etree import ElementTree as xml

from .quiz import Question

#: A mean of four has two decimals.
_TOLERANCE = "0.005"


def as_text(questions: Sequence[Question], *, has_answers: bool = True) -> str:
    """Questions with numbers; then answers with their reasons."""
    parts = [f"{i}. {each.text}" for i, each in enumerate(questions, 1)]
    if has_answers:
        parts.append("Answers")
        for i, each in enumerate(questions, 1):
            lines = [f"{i}. {_answer(each)}", *(f"   - {reason}" for reason in each.reasons)]
            parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def as_json(questions: Sequence[Question], *, seed: int, has_answers: bool = True) -> str:
    """One object: the seed, and a list of what `Question` has."""
    rows = [asdict(each) for each in questions]
    if not has_answers:
        rows = [{k: v for k, v in row.items() if k not in ("answer", "reasons")} for row in rows]
    return json.dumps({"seed": seed, "questions": rows}, indent=1) + "\n"


def as_moodle(questions: Sequence[Question], *, seed: int) -> str:
    """A file that Moodle imports; an answer is part of it."""
    quiz = xml.Element("quiz")
    category = xml.SubElement(quiz, "question", type="category")
    _text(category, "category", f"$course$/schedlab, seed {seed}")
    for number, each in enumerate(questions, 1):
        is_names = each.kind == "gantt"
        question = xml.SubElement(quiz, "question", type="shortanswer" if is_names else "numerical")
        _text(question, "name", f"{number:03} {each.kind}, {each.policy}")
        _text(question, "questiontext", f"<p>{escape(each.text)}</p>", format="html")
        steps = "".join(f"<li>{escape(reason)}</li>" for reason in each.reasons)
        _text(question, "generalfeedback", f"<ol>{steps}</ol>", format="html")
        for name, value in (("defaultgrade", "1"), ("penalty", "0.3333333"), ("hidden", "0")):
            xml.SubElement(question, name).text = value
        if is_names:
            xml.SubElement(question, "usecase").text = "0"
        # Moodle ignores blanks at the ends only.
        for accepted in dict.fromkeys(
            (each.answer, each.answer.replace(" ", "")) if is_names else (each.answer,)
        ):
            answer = xml.SubElement(question, "answer", fraction="100", format="moodle_auto_format")
            xml.SubElement(answer, "text").text = accepted
            if not is_names:
                xml.SubElement(answer, "tolerance").text = _TOLERANCE
            _text(answer, "feedback", "", format="html")
    xml.indent(quiz)
    return xml.tostring(quiz, encoding="unicode", xml_declaration=True) + "\n"


def _answer(question: Question) -> str:
    return f"{question.answer} {question.unit}".rstrip()


def _text(parent: xml.Element, name: str, text: str, **attributes: str) -> None:
    """An element with a `text` in it, as Moodle has them."""
    xml.SubElement(xml.SubElement(parent, name, attributes), "text").text = text
