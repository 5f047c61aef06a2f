# SPDX-License-Identifier: MIT
"""Grading: what an assignment may say, what students' work is drawn from, points, and what is written."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
import zipfile
from pathlib import Path

import numpy as np
import pytest

from schedlab.errors import SpecError, UsageError
from schedlab.grade import grade as grading
from schedlab.grade import runs
from schedlab.grade.assignment import read_assignment
from schedlab.grade.decide import decide_all
from schedlab.grade.grade import count_lines, grade, read_submissions
from schedlab.grade.gradescope import nothing_to_grade, write_zip
from schedlab.grade.outputs import as_gradescope, as_text
from schedlab.grade.pages import similarity
from schedlab.grade.runs import Fact
from schedlab.grade.variants import COMMON, make_variant, read_secret, seed_of, variants_of
from schedlab.hosts.choose import unavailable_reason
from schedlab.program.compiler import compile_workload

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SECRET = b"a secret of the tests"

needs_sandbox = pytest.mark.skipif(
    unavailable_reason("wasm") is not None, reason=str(unavailable_reason("wasm"))
)

WORK = """
[workload]
title = "Two"
question = "?"
tick = "1ms"

[[task]]
name = "long"
count = 3
tickets = 300
phases = [{run = "uniform(20ms, 30ms)"}]

[[task]]
name = "short"
count = 2
phases = [{run = "5ms"}]
"""
HEAD = """
[assignment]
title = "A"
question = "?"
seeds = 3
variants = 50

[[workload]]
name = "two"
source = "two.toml"

[[workload]]
name = "secret-two"
source = "two.toml"
hidden = true
"""


def assignment(folder: Path, tests: str, head: str = HEAD):
    (folder / "two.toml").write_text(WORK)
    (folder / "assignment.toml").write_text(head + tests)
    return read_assignment(folder / "assignment.toml")


# ---- what an assignment may say -------------------------------------------------


@pytest.mark.parametrize(
    ("test", "line", "message"),
    [
        ('name = "t"\nruns = true', 17, "key 'points' is missing"),
        ('name = "t"\npoints = -1\nruns = true', 19, "points: must be a number of points"),
        ('name = "t"\npoints = 1', 17, "a test has one of runs, .* has none"),
        ('name = "t"\npoints = 1\nruns = true\nlines_max = 3', 17, "has runs and lines_max"),
        ('name = "t"\npoints = 1\nruns = true\nworkloads = ["tow"]', 21, "no .*'tow' .did you mean 'two'"),
        ('name = "t"\npoints = 1\nwait_max = "5"', 20, "wait_max: "),
        ('name = "t"\npoints = 1\nshares = "weight"', 17, "key 'within' is missing"),
        ('name = "t"\npoints = 1\nshares = "size"\nwithin = "5%"', 20, "shares: must be weight or tickets"),
        (
            'name = "t"\npoints = 1\nfinish = {shrt = "5ms"}',
            20,
            "finish: two has no task 'shrt' .did you mean 'short'",
        ),
        ('name = "t"\npoints = 1\nmetric = "wakeup_p98"\nat_most = "5ms"', 20, "metric: unknown metric"),
        (
            'name = "t"\npoints = 1\nmetric = "wakeup_p99"\nbetter_than = "rrr"\nby = "5%"',
            21,
            "better_than: .*'rrr'",
        ),
        (
            'name = "t"\npoints = 2\nwait_max = "5ms"\npartial = [{points = 1, wait_max = "4ms"}]',
            21,
            "must be weaker",
        ),
        (
            'name = "t"\npoints = 2\nruns = true\npartial = [{points = 1}]',
            21,
            "no limit that could be weaker",
        ),
        ('name = "t"\npoints = 1\nruns = true\nwithin = "5%"', 21, "within: only a test with 'shares'"),
    ],
)
def test_an_error_names_its_line(tmp_path, test, line, message):
    with pytest.raises(SpecError, match=message) as caught:
        assignment(tmp_path, f"\n[[test]]\n{test}\n")
    assert {fault.line for fault in caught.value.faults} == {line}


def test_all_errors_are_reported_at_once(tmp_path):
    head = HEAD.replace('source = "two.toml"\nhidden', 'source = "none.toml"\nhidden').replace(
        "[assignment]", "[asignment]"
    )
    with pytest.raises(SpecError) as caught:
        assignment(tmp_path, "[[test]]\nname = 't'\n", head)
    text = str(caught.value)
    assert (
        "did you mean 'assignment'" in text
        and "none.toml: no such file" in text
        and "'points' is missing" in text
    )


def test_a_secret_is_made_once_and_is_for_its_owner(tmp_path):
    first = read_secret(tmp_path / "secret.txt")
    assert read_secret(tmp_path / "secret.txt") == first and len(first) == 32
    assert (tmp_path / "secret.txt").stat().st_mode & 0o077 == 0
    (tmp_path / "short.txt").write_text("abc\n")
    with pytest.raises(UsageError, match="3 bytes are no secret"):
        read_secret(tmp_path / "short.txt")


# ---- variants -------------------------------------------------------------------


def test_students_have_work_of_their_own(tmp_path):
    asked = assignment(tmp_path, "[[test]]\nname = 't'\npoints = 1\nruns = true\n")
    everybody = {name: variants_of(asked, SECRET, name) for name in map(str, range(50))}
    assert all(len(set(own)) == 3 and own[0] == COMMON and max(own) < 50 for own in everybody.values())
    assert len({tuple(own) for own in everybody.values()}) > 40
    assert everybody["7"] == variants_of(asked, SECRET, "7") != variants_of(asked, b"another one", "7")
    two = asked.workloads["two"]
    seeds = {seed_of(SECRET, two, variant) for variant in range(5)}
    assert len(seeds) == 5 and seeds.isdisjoint(
        {seed_of(b"another one", two, variant) for variant in range(5)}
    )


def test_pids_are_shuffled_and_names_are_neutral(tmp_path):
    asked = assignment(tmp_path, "[[test]]\nname = 't'\npoints = 1\nruns = true\n")
    two = asked.workloads["two"]
    orders = set()
    for variant in range(5):
        program, names = make_variant(SECRET, two, variant)
        plain = compile_workload(two.workload, seed=seed_of(SECRET, two, variant))
        assert set(program.tasks["name"].tolist()) == {"task"} and b"long" not in program.data
        assert sorted(program.work_ns().tolist()) == sorted(plain.work_ns().tolist())
        assert sorted(names) == sorted(plain.tasks["name"].tolist())
        assert [(name == "short") for name in names] == (program.work_ns() == 5_000_000).tolist()
        orders.add(tuple(names))
    assert len(orders) > 1


def test_children_keep_their_parents():
    """report-5/mixed: a parent that starts two classes of children."""
    from schedlab.grade.assignment import Graded
    from schedlab.workload.find import load_workload

    workload = load_workload("report-5/mixed")
    program, names = make_variant(SECRET, Graded("w", workload, 3, False), 1)
    assert names[0] == "parent" and program.task_rows["parent"][1:].tolist() == [0] * 50
    spawns = {(int(op["a"]), int(op["b"])) for op in program.ops if op["verb"] == 13}
    for first, number in spawns:
        assert len(set(names[first : first + number])) == 1
    assert sum(number for _, number in spawns) == 50
    assert np.bincount(program.task_rows["class_idx"]).tolist() == [1, 34, 16]


# ---- points ---------------------------------------------------------------------


def facts(**given):
    made = {"metrics": {}, "wait": ["long", 10], "cost": [100, 10]} | given
    return [Fact(name, variant, **made) for name in ("two", "secret-two") for variant in range(3)]


def decided(asked, found, baselines=None, n_lines=10):
    return decide_all(asked, found, baselines or {}, n_lines=n_lines, error=None)[0]


def test_a_weaker_limit_is_worth_less_and_the_worst_workload_counts(tmp_path):
    text = (
        "[[test]]\nname = 't'\npoints = 10\nwait_max = '5ms'\npartial = [{points = 4, wait_max = '10ms'}]\n"
    )
    asked = assignment(tmp_path, text)
    found = facts(wait=["long", 4_000_000])
    assert decided(asked, found).points == 10
    found[4].wait = ["short", 7_000_000]
    outcome = decided(asked, found)
    assert outcome.points == 4 and outcome.parts[1].text == "short waits 7 ms at once, allowed is 5ms"
    found[4].wait = ["short", 12_000_000]
    assert decided(asked, found).points == 0
    split = assignment(tmp_path, text + "each = true\n")
    assert decided(split, found).points == 5


def test_a_run_that_failed_is_worth_nothing(tmp_path):
    asked = assignment(tmp_path, "[[test]]\nname = 't'\npoints = 10\nwait_max = '5ms'\neach = true\n")
    found = facts()
    found[0].error = "stalled"
    outcome = decided(asked, found)
    assert (outcome.points, outcome.parts[0].text, outcome.parts[0].level) == (5, "stalled", None)


@pytest.mark.parametrize(
    ("own", "points"),
    [((40, 44, 42), 10), ((75, 85, 80), 4), ((99, 101, 99), 0), ((10, 10, 170), 0), ((110, 120, 130), 0)],
)
def test_a_margin_is_decided_by_the_interval(tmp_path, own, points):
    """Better by 30 % on average is not enough where the seeds leave a doubt."""
    asked = assignment(
        tmp_path,
        "[[test]]\nname = 't'\npoints = 10\nmetric = 'wakeup_p99'\nbetter_than = 'rr'\nby = '40%'\n"
        "partial = [{points = 4, by = '5%'}]\n",
    )
    found, other = facts(), facts()
    for fact, value in zip(found, own * 2, strict=True):
        fact.metrics = {"wakeup_ns_p99": value}
    for fact in other:
        fact.metrics = {"wakeup_ns_p99": 100 + fact.variant}
    assert decided(asked, found, {"rr": other}).points == points


def test_other_rules(tmp_path):
    asked = assignment(
        tmp_path, "[[test]]\nname = 't'\npoints = 1\nshares = 'tickets'\nwithin = '5%'\ntasks = ['long']\n"
    )
    rows = [["long", 104, 100.0], ["short", 10, 100.0]]
    assert decided(asked, facts(shares={"tickets": rows})).points == 1
    rows = [["long", 106, 100.0]]
    outcome = decided(asked, facts(shares={"tickets": rows}))
    assert outcome.points == 0 and "6.0 % off, allowed is 5 %" in outcome.parts[0].text
    asked = assignment(tmp_path, "[[test]]\nname = 't'\npoints = 1\nlines_max = 9\n")
    assert decided(asked, facts()).points == 0 and decided(asked, facts(), n_lines=9).points == 1
    asked = assignment(tmp_path, "[[test]]\nname = 't'\npoints = 1\ncost_max = 9\n")
    assert decided(asked, facts()).points == 0 and decided(asked, facts(cost=[90, 10])).points == 1
    asked = assignment(tmp_path, "[[test]]\nname = 't'\npoints = 1\nwork_conserving = true\n")
    assert decided(asked, facts(idle="CPU 0: idle")).points == 0 and decided(asked, facts()).points == 1


def test_lines_are_those_with_code():
    assert count_lines(b"/* a\n * b */\n\nint x; // c\n  // d\nint y; /* e */\n") == 2


# ---- submissions ----------------------------------------------------------------


def test_what_is_no_plain_file_is_not_opened(tmp_path):
    (tmp_path / "link.bpf.c").symlink_to("/etc/hostname")
    (tmp_path / "big.bpf.c").write_bytes(b" " * ((1 << 20) + 1))
    found = {
        each.student: each for each in read_submissions([*tmp_path.glob("*.bpf.c"), tmp_path / "none.bpf.c"])
    }
    assert found["link"].text == b"" and "no plain file" in found["link"].error
    assert "larger than" in found["big"].error and "no such file" in found["none"].error
    with pytest.raises(UsageError, match="give each student one file"):
        read_submissions([tmp_path / "a.bpf.c", tmp_path / "b" / "a.bpf.c"])


# ---- examples, whole --------------------------------------------------------------

#: Points of each file in the examples, and what has to be said to the student.
POINTS = {
    "mlfq": {
        "full": (100, "Score: 100/100"),
        "levels": (75, "backup waits"),
        "turns": (55, "C ends at"),
        "compile": (0, "expected ';'"),
        "hang": (5, "did not return in ops.enqueue()"),
        "attack": (0, "it includes /etc/hostname, which is outside"),
    },
    "share": {
        "exact": (100, "Score: 100/100"),
        "owed": (85, "first waits"),
        "drawn": (58, "% off, allowed is 4 %"),
        "crash": (5, "divided by zero in ops.enqueue()"),
        "lost": (7, "runnable task stall"),
        "forged": (5, "has damaged what the simulator would say"),
    },
}


@pytest.fixture(scope="module", params=POINTS)
def graded(request, tmp_path_factory, build):
    """An example, graded as a teacher does it, by the command."""
    out = tmp_path_factory.mktemp(request.param)
    (out / "secret.txt").write_bytes(SECRET)
    folder = EXAMPLES / request.param
    files = [*folder.glob("*/*.bpf.c")]
    command = [sys.executable, "-m", "schedlab", "grade", folder / "assignment.toml", *files]
    done = subprocess.run(
        [*command, "--secret", out / "secret.txt", "--out", out / "grades"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return request.param, out / "grades", done.stdout


@needs_sandbox
def test_examples_are_graded(graded):
    name, out, text = graded
    rows = {row["student"]: row for row in csv.DictReader((out / "grades.csv").read_text().splitlines())}
    assert rows.keys() == POINTS[name].keys()
    for student, (points, said) in POINTS[name].items():
        assert (student, float(rows[student]["points"])) == (student, points)
        own = text[text.index(f"{student}.bpf.c: ") :]
        assert said in own[: own.index("\nScore: ") + 20], student
    assert str(ROOT) not in text and str(out) not in text


@needs_sandbox
def test_gradescope_reads_its_keys(graded):
    name, out, _ = graded
    hidden = {
        each.name
        for each in read_assignment(EXAMPLES / name / "assignment.toml").workloads.values()
        if each.is_hidden
    }
    for student, (points, _said) in POINTS[name].items():
        result = json.loads((out / "results" / f"{student}.json").read_text())
        assert result["score"] == points == sum(test["score"] for test in result["tests"])
        assert sum(test["max_score"] for test in result["tests"]) == 100
        for test in result["tests"]:
            assert test.keys() == {"name", "score", "max_score", "status", "output", "visibility"}
            assert test["status"] in ("passed", "failed") and 0 <= test["score"] <= test["max_score"]
            # What is hidden stands in hidden tests alone.
            if test["visibility"] == "visible":
                assert not any(f"{each}: " in test["output"] for each in hidden)
        assert {test["visibility"] for test in result["tests"]} <= {"visible", "hidden"}
        assert all(row.keys() == {"name", "value", "order"} for row in result["leaderboard"])


@needs_sandbox
def test_junit_has_a_suite_per_student(graded):
    name, out, _ = graded
    root = xml.parse(out / "junit.xml").getroot()
    assert root.tag == "testsuites" and {suite.get("name") for suite in root} == POINTS[name].keys()
    for suite in root:
        cases = suite.findall("testcase")
        assert len(cases) == int(suite.get("tests")) and len(list(suite.iter("failure"))) == int(
            suite.get("failures")
        )
        assert {*suite.attrib} >= {"name", "tests", "failures", "errors", "skipped", "time"}
        assert all(case.get("classname") and case.get("name") for case in cases)


#: Of each object of Gradescope's results.json, as its autograder specification lists them: keys and
#: what a value may be, a type or one of some words.
VISIBILITY = {"hidden", "after_due_date", "after_published", "visible"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}
RESULT = {
    "score": (int, float), "execution_time": (int, float), "output": str, "output_format": FORMATS,
    "test_output_format": FORMATS, "test_name_format": FORMATS, "visibility": VISIBILITY,
    "stdout_visibility": VISIBILITY, "extra_data": dict, "tests": list, "leaderboard": list,
}  # fmt: skip
RESULT_TEST = {
    "score": (int, float), "max_score": (int, float), "status": {"passed", "failed"}, "name": str,
    "name_format": FORMATS, "number": str, "output": str, "output_format": FORMATS, "tags": list,
    "visibility": VISIBILITY, "extra_data": dict,
}  # fmt: skip
RESULT_COLUMN = {"name": str, "value": (int, float, str), "order": {"asc", "desc"}}


def obey(found: dict, rule: dict) -> None:
    for key, value in found.items():
        assert key in rule, key
        allowed = rule[key]
        fits = value in allowed if isinstance(allowed, set) else isinstance(value, allowed)
        assert fits and not isinstance(value, bool), (key, value)


def obey_gradescope(result: dict) -> None:
    obey(result, RESULT)
    # A score of the whole may be missing where each test has one.
    assert "score" in result or all("score" in test for test in result["tests"])
    for test in result.get("tests", []):
        obey(test, RESULT_TEST)
    for column in result.get("leaderboard", []):
        obey(column, RESULT_COLUMN)
        assert column.keys() >= {"name", "value"}


@needs_sandbox
def test_gradescope_gets_what_its_specification_lists(graded):
    name, out, _ = graded
    for student in POINTS[name]:
        obey_gradescope(json.loads((out / "results" / f"{student}.json").read_text()))
    asked = read_assignment(EXAMPLES / name / "assignment.toml")
    for n_files in (0, 2):
        obey_gradescope(json.loads(json.dumps(nothing_to_grade(asked, n_files))))


#: Of Jenkins' junit-10.xsd, the strictest that is published: by element its attributes, those that
#: must be there, and its children. Times are Surefire's.
JUNIT = {
    "testsuites": ({"name", "time", "tests", "failures", "errors", "disabled"}, set(), {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id",
         "package", "file", "log", "url", "version"},
        {"name", "tests", "failures", "errors"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "time", "classname", "group"},
        {"name"},
        {"skipped", "error", "failure", "rerunFailure", "rerunError", "flakyFailure", "flakyError", "system-out", "system-err"},
    ),
    "failure": ({"type", "message"}, set(), set()),
}  # fmt: skip
SUREFIRE_TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]{0,3})?")


@needs_sandbox
def test_junit_is_what_its_published_schema_has(graded):
    _, out, _ = graded
    root = xml.parse(out / "junit.xml").getroot()
    assert root.tag == "testsuites"
    for element in root.iter():
        allowed, needed, children = JUNIT[element.tag]
        assert needed <= element.attrib.keys() <= allowed, element.tag
        assert {child.tag for child in element} <= children
        assert SUREFIRE_TIME.fullmatch(element.get("time", "0"))
        for count in ("tests", "failures", "errors", "skipped"):
            assert element.get(count, "0").isdigit()


@needs_sandbox
def test_what_is_done_is_not_done_again_and_points_need_no_run(tmp_path, monkeypatch, build):
    asked = assignment(
        tmp_path, "[[test]]\nname = 't'\npoints = 1\nmetric = 'wait_mean'\nbetter_than = 'fifo'\nby = '5%'\n"
    )
    shutil.copy(ROOT / "policies/rr.bpf.c", tmp_path / "rr.bpf.c")
    found = read_submissions([tmp_path / "rr.bpf.c"])
    first = grade(asked, found, SECRET, tmp_path / "out").reports
    assert len(first[0].facts) == 6 and first[0].error is None

    def nothing(*_, is_trusted):
        raise AssertionError("a run")

    monkeypatch.setattr("schedlab.grade.grade._Pool.submit", nothing)
    again = grade(asked, found, SECRET, tmp_path / "out").reports
    assert again[0].facts == first[0].facts and again[0].points == first[0].points
    dearer = assignment(
        tmp_path, "[[test]]\nname = 't'\npoints = 7\nmetric = 'wait_mean'\nbetter_than = 'fifo'\nby = '5%'\n"
    )
    assert grade(dearer, found, SECRET, tmp_path / "out").reports[0].outcomes[0].test.points == 7
    with pytest.raises(AssertionError, match="a run"):
        grade(asked, found, b"another secret", tmp_path / "out")


@needs_sandbox
def test_a_student_sees_nothing_that_is_hidden(graded):
    name, out, _ = graded
    asked = read_assignment(EXAMPLES / name / "assignment.toml")
    files = [*(EXAMPLES / name).glob("*/*.bpf.c")]
    for report in grade(asked, read_submissions(files), SECRET, out).reports:
        text = as_text(asked, report, is_student=True)
        for workload in asked.workloads.values():
            assert not (workload.is_hidden and re.search(rf"\b{workload.name}\b", text)), text
        assert "== Hidden tests ==" in text
        assert as_gradescope(asked, report)["score"] == report.points


def test_the_bench_notes_what_tests_ask(tmp_path):
    asked = assignment(tmp_path, "[[test]]\nname = 't'\npoints = 1\nruns = true\nworkloads = ['two']\n")
    needs = runs.needs_of(asked, "two")
    assert needs.has_seeds and not needs.has_exact and not needs.has_idle and needs.metrics == ()
    assert not runs.needs_of(asked, "secret-two").has_seeds


@needs_sandbox
def test_a_counter_example_is_small_and_its_command_repeats_it(graded, tmp_path):
    name, out, _ = graded
    student, lines, said, least_ns = {
        "mlfq": ("levels", 25, "backup waits", 500_000_000),
        "share": ("lost", 20, "large gets 0 of CPU time", 1_000_000_000),
    }[name]
    folder = out / "students" / student
    text = (folder / "example-1.toml").read_text()
    assert said in text.splitlines()[0] and len(text.splitlines()) <= lines
    page = (folder / "index.html").read_text()
    assert "<svg" in page and "<script" not in page
    command = text.splitlines()[1].removeprefix("# ")
    assert command in page
    words = shlex.split(command.replace("run-1", str(tmp_path)))
    done = subprocess.run(
        [sys.executable, "-m", "schedlab", *words[1:], "--json"], cwd=folder, capture_output=True, text=True
    )
    (run,) = json.loads(done.stdout)["runs"]
    assert run["metrics"]["starvation_ns"] > least_ns


@needs_sandbox
def test_pages_of_students_hide_what_is_hidden(graded):
    name, out, _ = graded
    asked = read_assignment(EXAMPLES / name / "assignment.toml")
    hidden = [each.name for each in asked.workloads.values() if each.is_hidden]
    secret = [test.name for test in asked.tests if set(test.workloads) and set(test.workloads) <= set(hidden)]
    assert secret
    for student in POINTS[name]:
        for file in (out / "students" / student).iterdir():
            text = file.read_text()
            assert not any(re.search(rf"\b{word}\b", text) for word in [*hidden, *secret]), file
    whole = (out / "class.html").read_text()
    assert all(word in whole for word in [*POINTS[name], *secret, "Decisions that are alike"])


def test_decisions_are_held_against_each_other():
    def marked(*marks):
        return [Fact("w", COMMON, marks=sorted(marks))]

    assert similarity(marked(1, 2, 3), marked(1, 2, 3)) == 1
    assert similarity(marked(1, 2), marked(2, 3)) == pytest.approx(1 / 3)
    assert similarity(marked(1), [Fact("w", COMMON, error="stall")]) is None


FLOOD = """
#include <scx/common.bpf.h>
#include <scx/policy/percpu.h>

char _license[] SEC("license") = "GPL";

static int on_period(void *map, u32 *key, struct period_timer *t)
{
	scx_bpf_kick_cpu(0, SCX_KICK_PREEMPT);
	return set_period_timer(t, 100) ? 0 : 0;
}

void BPF_STRUCT_OPS(flood_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(flood_init)
{
	return start_periods(100);
}

SCX_OPS_DEFINE(flood_ops, .enqueue = (void *)flood_enqueue, .init = (void *)flood_init, .name = "flood");
"""


@needs_sandbox
def test_a_policy_that_fills_the_disk_is_ended(tmp_path, monkeypatch, build):
    asked = assignment(
        tmp_path,
        "[[test]]\nname = 't'\npoints = 1\nruns = true\nworkloads = ['two']\n",
        HEAD.replace("seeds = 3", "seeds = 1"),
    )
    (tmp_path / "flood.bpf.c").write_text(FLOOD)
    monkeypatch.setattr(runs, "LIMITS", (10**8, 2 * 10**9, 1 << 30, 100_000))
    bench = runs.Bench(asked, SECRET)
    try:
        built = bench.build(str(tmp_path / "flood.bpf.c"), is_trusted=False)
        (fact,) = bench.run_all(built, "two", [0])
    finally:
        bench.close()
    assert fact.error is not None and "File too large" in fact.error


@needs_sandbox
def test_a_process_that_dies_takes_no_other_submission_with_it(tmp_path, monkeypatch, build):
    asked = assignment(
        tmp_path,
        "[[test]]\nname = 't'\npoints = 1\nruns = true\nworkloads = ['two']\n",
        HEAD.replace("seeds = 3", "seeds = 1"),
    )
    for name in ("rr", "fifo"):
        shutil.copy(ROOT / f"policies/{name}.bpf.c", tmp_path)
    real = grading._Pool.submit

    def submit(pool, policy, works, *, is_trusted):
        if policy.endswith("fifo.bpf.c"):
            return pool._start().submit(os._exit, 1)
        return real(pool, policy, works, is_trusted=is_trusted)

    monkeypatch.setattr(grading._Pool, "submit", submit)
    found = read_submissions([tmp_path / "fifo.bpf.c", tmp_path / "rr.bpf.c"])
    fifo, rr = grade(asked, found, SECRET, tmp_path / "out", has_examples=False).reports
    assert (fifo.points, rr.points) == (0, 1) and "has died" in fifo.facts[0].error


# ---- Gradescope -------------------------------------------------------------------


@needs_sandbox
def test_the_autograder_of_gradescope_grades_a_submission(tmp_path, build):
    asked = read_assignment(EXAMPLES / "mlfq" / "assignment.toml")
    write_zip(asked, SECRET, tmp_path / "a.zip", None)
    write_zip(asked, SECRET, tmp_path / "b.zip", None)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    folder = tmp_path / "autograder"
    with zipfile.ZipFile(tmp_path / "a.zip") as file:
        assert all(file.getinfo(name).external_attr >> 16 == 0o755 for name in ("setup.sh", "run_autograder"))
        file.extractall(folder / "source")
    (folder / "submission").mkdir()
    (folder / "submission_metadata.json").write_text('{"users": [{"id": 7}, {"id": 3}]}')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/schedlab").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m schedlab "$@"\n')
    (tmp_path / "bin/schedlab").chmod(0o755)
    env = os.environ | {
        "AUTOGRADER": str(folder), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "python"),
    }  # fmt: skip

    def run() -> dict:
        done = subprocess.run(
            ["bash", folder / "source/run_autograder"], env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads((folder / "results/results.json").read_text())

    nothing = run()
    assert nothing["score"] == 0 and "hand in one file" in nothing["output"] and len(nothing["tests"]) == 8
    shutil.copy(EXAMPLES / "mlfq/solutions/turns.bpf.c", folder / "submission/mine.bpf.c")
    result = run()
    assert result["score"] == 55 and result["execution_time"] > 0
    assert subprocess.run(["bash", "-n", folder / "source/setup.sh"]).returncode == 0


def test_a_file_outside_of_the_folder_is_refused(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "two.toml").write_text(WORK)
    head = HEAD.replace('source = "two.toml"\nhidden', 'source = "../two.toml"\nhidden')
    asked = assignment(tmp_path / "in", "[[test]]\nname = 't'\npoints = 1\nruns = true\n", head)
    with pytest.raises(UsageError, match="two.toml is outside of"):
        write_zip(asked, SECRET, tmp_path / "a.zip", None)
