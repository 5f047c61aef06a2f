# SPDX-License-Identifier: MIT
"""The quiz: its answers against the textbooks' rules, written down anew, millisecond by millisecond."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from xml.etree import ElementTree as xml

import pytest

from schedlab.errors import UsageError
from schedlab.grade.quiz import KINDS, Question, Work, draw_quiz
from schedlab.grade.quiz_formats import as_json, as_moodle, as_text

N_QUESTIONS = 24


@pytest.fixture(scope="module")
def questions(simulator):
    return draw_quiz(n_questions=N_QUESTIONS, seed=11)


def by_rule(question: Question) -> list[str]:
    """Who has the CPU in each millisecond, '' for none."""
    left = {job.name: job.burst_ms for job in question.jobs}
    had = dict.fromkeys(left, 0)
    arrival = {job.name: job.arrival_ms for job in question.jobs}
    queue: list[str] = []
    running, used, course = "", 0, []
    while any(left.values()):
        now = len(course)
        queue += [job.name for job in question.jobs if job.arrival_ms == now]
        if running and not left[running]:
            running = ""
        if running and used >= time_slice(question, had[running] - used):
            queue.append(running)
            running = ""
        if running and question.policy == "srtf" and any(left[name] < left[running] for name in queue):
            queue.append(running)
            running = ""
        if not running and queue:
            # The least of these; equal ones in the order of the queue.
            keys = {
                "fifo": arrival,
                "sjf": left,
                "srtf": left,
                "rr": {},
                "mlfq": {name: -level(had[name], question.slice_ms) for name in queue},
            }[question.policy]
            running, used = min(queue, key=lambda name: keys.get(name, 0)), 0
            queue.remove(running)
        course.append(running)
        if running:
            left[running] -= 1
            had[running] += 1
            used += 1
    return course


def level(had: int, quantum: int) -> int:
    return 3 if had < quantum else 2 if had < 3 * quantum else 1 if had < 7 * quantum else 0


def time_slice(question: Question, had_before: int) -> int:
    """How long a job may run from the start of its time slice on; at level 0 it is 10 ms."""
    if question.policy == "mlfq":
        at = level(had_before, question.slice_ms)
        return question.slice_ms << (3 - at) if at else 10
    return question.slice_ms if question.policy == "rr" else sys.maxsize


def test_every_answer_is_what_the_rule_gives(questions):
    for question in questions:
        course = by_rule(question)
        jobs = question.jobs
        if question.kind == "turnaround":
            ends = {name: i + 1 for i, name in enumerate(course)}
            expected = f"{sum(ends[job.name] - job.arrival_ms for job in jobs) / len(jobs):g}"
        elif question.kind == "response":
            expected = f"{sum(course.index(job.name) - job.arrival_ms for job in jobs) / len(jobs):g}"
        elif question.kind == "gantt":
            order = [name for i, name in enumerate(course) if not i or course[i - 1] != name]
            expected = " ".join(name for name in order if name)
        else:
            name, at = re.search(r"is job (\w) at (\d+) ms\?", question.text).groups()
            expected = str(level(course[: int(at)].count(name), question.slice_ms))
        assert question.answer == expected, question


def test_every_step_of_a_reason_is_what_the_rule_gives(questions):
    for question in questions:
        course = by_rule(question)
        for reason in question.reasons[: None if question.kind == "gantt" else -1]:
            begin, end, name = re.match(r"(\d+) to (\d+) ms: (\w) runs, since ", reason).groups()
            assert set(course[int(begin) : int(end)]) == {name}, (question, reason)


def test_all_policies_and_kinds_are_asked_and_equal_seeds_are_equal(questions, simulator):
    assert Counter(each.kind for each in questions) == dict.fromkeys(KINDS, N_QUESTIONS // len(KINDS))
    assert {each.policy for each in questions} == {policy for those in KINDS.values() for policy in those}
    assert len({each.text for each in questions}) == N_QUESTIONS
    assert draw_quiz(n_questions=2, seed=11) == questions[:2]
    assert draw_quiz(n_questions=1, seed=12) != questions[:1]


def test_wrong_words_are_refused():
    with pytest.raises(UsageError, match=r"--questions must be from 1 to 200 \(got 0\)"):
        draw_quiz(n_questions=0, seed=1)
    with pytest.raises(UsageError, match="--kind gant: unknown.*gantt"):
        draw_quiz(n_questions=1, seed=1, kinds=["gant"])


QUESTION = Question(
    "turnaround", "fifo", 0, (Work("A", 0, 3),), "What is <b>&?", "3.25", "ms", ("A runs & ends.",)
)


def test_text_and_json_have_answers_unless_told_otherwise():
    assert "1. 3.25 ms\n   - A runs & ends." in as_text([QUESTION])
    assert as_text([QUESTION], has_answers=False) == "1. What is <b>&?\n"
    found = json.loads(as_json([QUESTION], seed=5))
    assert found["seed"] == 5 and found["questions"][0]["answer"] == "3.25"
    assert set(json.loads(as_json([QUESTION], seed=5, has_answers=False))["questions"][0]) == {
        "kind", "policy", "slice_ms", "jobs", "text", "unit",
    }  # fmt: skip


def test_moodle_gets_the_elements_that_its_documentation_names(questions):
    quiz = xml.fromstring(as_moodle([QUESTION, *questions], seed=11))
    category, *asked = quiz.findall("question")
    assert quiz.tag == "quiz" and category.get("type") == "category"
    assert category.findtext("category/text").startswith("$course$/")
    assert len(asked) == N_QUESTIONS + 1
    for element, question in zip(asked, [QUESTION, *questions], strict=True):
        assert element.findtext("name/text")
        assert element.find("questiontext").get("format") == "html"
        # HTML within XML: escaped once for each.
        assert xml.fromstring(element.findtext("questiontext/text")).text == question.text
        steps = xml.fromstring(element.findtext("generalfeedback/text"))
        assert [step.text for step in steps] == list(question.reasons)
        answers = element.findall("answer")
        assert {answer.get("fraction") for answer in answers} == {"100"}
        assert answers[0].findtext("text") == question.answer
        if element.get("type") == "numerical":
            assert float(answers[0].findtext("text")) >= 0 and float(answers[0].findtext("tolerance")) < 0.01
        else:
            # A star would stand for any letters.
            assert element.get("type") == "shortanswer" and element.findtext("usecase") == "0"
            assert re.fullmatch(r"[A-D ]+", question.answer)


def test_the_command_writes_a_file_and_says_what_does_not_fit(simulator, tmp_path):
    def quiz(*words):
        return subprocess.run(
            [sys.executable, "-m", "schedlab", "quiz", *words], capture_output=True, text=True, cwd=tmp_path
        )

    done = quiz("-n", "2", "--kind", "level,gantt", "--format", "moodle", "--out", "quiz.xml")
    assert (done.returncode, done.stdout) == (0, "wrote quiz.xml, 2 questions\n"), done.stderr
    assert len(xml.parse(tmp_path / "quiz.xml").findall("question")) == 3
    refused = quiz("--format", "moodle", "--no-answers")
    assert refused.returncode == 2 and "Moodle marks the answers itself" in refused.stderr
