# SPDX-License-Identifier: MIT
"""What `schedlab bench` shares with hyperfine: commands, parameters, what a shell does around them, files."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import subprocess
import sys

import pytest

from schedlab.cli.app import app
from schedlab.errors import SchedlabError, UsageError
from schedlab.measure.bench_series import (
    VALUES_MAX,
    Series,
    as_csv,
    as_markdown,
    make_series,
    read_parameters,
    run_shell,
    scan,
)
from schedlab.show.progress import Progress


@pytest.mark.parametrize("words, shell, parameters, message", [
    (["true"], "", [("n", ["1"])], r"parameter n: no command has \{n\}"),
    (["a {n}"], "sh", [("n", ["1"]), ("n", ["2"])], "given twice"),
    (["'"], "none", [], "quote it as for a shell"), ([""], "none", [], "a command is empty"),
])  # fmt: skip
def test_commands_that_mean_nothing_are_refused(words, shell, parameters, message):
    with pytest.raises(UsageError, match=message):
        make_series(words, shell, parameters)


def test_words_are_one_command_or_one_each():
    assert [each.argv for each in make_series(["make", "-j {n}"], "", [("n", ["1", "2"])])] == [
        ("make", "-j 1"),
        ("make", "-j 2"),
    ]
    found = make_series(["echo '{a} b' {b}", "true"], "none", [("a", ["x", "y"]), ("b", ["1"])])
    assert [each.argv for each in found] == [("echo", "x b", "1"), ("echo", "y b", "1"), ("true",)]
    assert found[0].parameters == {"a": "x", "b": "1"} and found[2].parameters == {}
    assert found[1].fill("rm {a}") == "rm y"
    assert make_series(["a | b"], "bash", [])[0] == Series("a | b", ("bash", "-c", "a | b"), {})


@pytest.mark.parametrize("low, high, step, values", [
    ("1", "3", "", ["1", "2", "3"]), ("0.1", "0.35", "0.1", ["0.1", "0.2", "0.3"]), ("3", "1", "-2", ["3", "1"]), ("5", "5", "", ["5"]),
])  # fmt: skip
def test_a_scan_has_both_ends(low, high, step, values):
    assert scan("n", low, high, step) == ("n", values)


@pytest.mark.parametrize("low, high, step, message", [
    ("1", "x", "", "numbers, and a step"), ("1", "2", "0", "a step that is not 0"), ("2", "1", "", "0 values"),
    ("0", str(VALUES_MAX), "", f"1 to {VALUES_MAX}"), ("0", "inf", "", "numbers"), ("nan", "1", "", "numbers"),
])  # fmt: skip
def test_a_scan_without_end_or_number_is_refused(low, high, step, message):
    with pytest.raises(UsageError, match=message):
        scan("n", low, high, step)


def test_a_shell_that_fails_is_an_error_with_its_last_line():
    run_shell("--setup", "")
    with pytest.raises(SchedlabError, match="--setup 'echo no >&2; exit 3': ended with 3: no"):
        run_shell("--setup", "echo no >&2; exit 3")


ROW = {"command": 'a "|" b', "policy": "SCHED_OTHER", "mean": 0.2, "stddev": None, "median": 0.2, "user": 0.1, "system": 0.0,
       "min": 0.2, "max": 0.2, "parameters": {"n": "1"}}  # fmt: skip


def test_files_can_be_read_by_others():
    rows = [ROW, ROW | {"mean": 0.1, "stddev": 0.01, "parameters": {}}]
    first, second = csv.DictReader(io.StringIO(as_csv(rows)))
    assert (first["command"], first["stddev"], first["parameter_n"], second["parameter_n"]) == (
        'a "|" b',
        "",
        "1",
        "",
    )
    lines = as_markdown(rows).splitlines()
    assert (
        lines[2] == '| `a "\\|" b` | SCHED_OTHER | 200.0 | 200.0 | 200.0 | 2.00 |'
        and "100.0 ± 10.0" in lines[3]
    )


@pytest.fixture
def bench(build, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        common = ("bench", "-p", "SCHED_OTHER", "--runs", "2", "--warmup", "1", "--recorded", "0")
        return app([*common, *words], standalone_mode=False) or 0

    return run


def test_what_is_around_runs_is_done_as_often_as_it_should_and_is_not_measured(bench, tmp_path, capsys):
    """2 runs and 1 to warm up of each of 2 commands; those that fail are kept and forgiven."""
    words = (
        "--setup",
        "echo setup{n} >> log",
        "--prepare",
        "sleep 0.1; echo prepare{n} >> log",
        "--cleanup",
        "echo end{n} >> log",
    )
    files = (
        "--export-json",
        "x.json",
        "--export-csv",
        "x.csv",
        "--export-markdown",
        "x.md",
        "--out",
        "samples",
    )
    code = bench(
        *words,
        *files,
        "--shell",
        "sh",
        "-L",
        "n",
        "0,7",
        "-i",
        "--json",
        "--",
        "echo run{n} >> log; exit {n}",
    )
    assert code == 0
    expected = [line for n in "07" for line in (f"setup{n}", *3 * [f"prepare{n}", f"run{n}"], f"end{n}")]
    assert (tmp_path / "log").read_text().split() == expected
    found = json.loads((tmp_path / "x.json").read_text())["results"]
    assert [(each["exit_codes"], each["parameters"], each["policy"]) for each in found] == [
        ([0, 0], {"n": "0"}, "SCHED_OTHER"), ([7, 7], {"n": "7"}, "SCHED_OTHER")]  # fmt: skip
    assert max(found[0]["times"]) < 0.1 and len(found[0]["memory_usage_byte"]) == 2
    assert len(json.loads(capsys.readouterr().out)["commands"]) == 2
    assert (
        (tmp_path / "x.csv").read_text().count("\n") == (tmp_path / "x.md").read_text().count("\n") - 1 == 3
    )
    assert len((tmp_path / "samples" / "2" / "samples.jsonl").read_text().splitlines()) == 2


def test_stdin_is_the_file_and_output_is_shown(bench, tmp_path, capfd):
    (tmp_path / "in").write_text("hello\n")
    assert bench("--input", "in", "--show-output", "--json", "--", "cat") == 0
    captured = capfd.readouterr()
    assert captured.err.count("hello") == 3 and json.loads(captured.out)["plan"]["input"] == str(
        tmp_path / "in"
    )
    with pytest.raises(UsageError, match="--input no: cannot be read"):
        bench("--input", "no", "--", "cat")


def test_several_commands_are_ranked_and_a_failure_is_an_error(bench, capsys):
    assert bench("--shell", "none", "--", "sleep 0.05", "true") == 0
    text = capsys.readouterr().out
    ranked = text[text.index("the fastest first") :]
    assert ranked.index("true") < ranked.index("sleep 0.05")
    assert bench("--shell", "none", "--", "false") == 1


def test_cleanup_is_done_where_prepare_fails(bench, tmp_path):
    with pytest.raises(SchedlabError, match="--prepare 'exit 4': ended with 4"):
        bench("--prepare", "exit 4", "--cleanup", "touch cleaned", "--", "true")
    assert (tmp_path / "cleaned").exists()


def test_several_parameters_are_combined(bench, tmp_path):
    words = ("-L", "a", "x,y", "-L", "b", "1", "-P", "n", "1", "2", "-P", "m", "0", "8", "-D", "1", "-D", "8")
    assert bench(*words, "--shell", "sh", "--export-csv", "x.csv", "--", "echo {a}{b}{n}{m} >> log") == 0
    assert sorted({*(tmp_path / "log").read_text().split()}) == [
        f"{a}1{n}{m}" for a in "xy" for n in "12" for m in "08"
    ]
    rows = [*csv.DictReader((tmp_path / "x.csv").read_text().splitlines())]
    assert [[row[f"parameter_{name}"] for name in "abnm"] for row in rows[:2]] == [[*"x110"], [*"x118"]]
    with pytest.raises(UsageError, match="2 times for 1 scan"):
        read_parameters([], [("n", "1", "2")], ["1", "2"])


def test_the_bar_counts_all_runs_and_estimates_the_time_left(monkeypatch):
    """What was there already says nothing of how long a run takes, and a long run counts down."""
    now = [0.0]
    monkeypatch.setattr("schedlab.show.progress.time.monotonic", lambda: now[0])
    progress = Progress()
    progress.expect(10)
    for _ in range(4):
        progress.advance({"workload": "make", "policy": "SCHED_OTHER"}, is_new=False)
    assert progress.time_left(5) == ""
    now[0] = 60.0
    progress.advance({"workload": "make", "policy": "SCHED_OTHER"})
    assert [progress.time_left(at) for at in (60, 75, 400)] == ["5:00 left", "4:45 left", "0:00 left"]


def test_a_terminal_gets_the_bar_on_stderr_alone(build, tmp_path):
    """Of 2 x (1 + 2) runs; the answer on stdout has none of it."""
    words = [
        sys.executable,
        "-m",
        "schedlab",
        "bench",
        "-p",
        "SCHED_OTHER",
        "--runs",
        "2",
        "--recorded",
        "0",
        "--shell",
        "none",
    ]
    main, terminal = os.openpty()
    with open(tmp_path / "out", "w+b") as output, open(main, "rb", buffering=0) as screen:
        done = subprocess.Popen([*words, "--", "sleep 0.2", "sleep 0.3"], stdout=output, stderr=terminal, cwd=tmp_path,
                                env=os.environ | {"COLUMNS": "80", "TERM": "xterm"})  # fmt: skip
        os.close(terminal)
        seen = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while piece := screen.read(65536):
                seen += piece
        code = done.wait()
    answer = (tmp_path / "out").read_text()
    assert code == 0 and "sleep 0.2" in answer and "\x1b" not in answer
    assert (
        b"3/6" in seen and b"0:00 left" in seen and b"sleep 0.3 SCHED_OTHER" in seen and b"[bold]" not in seen
    )
