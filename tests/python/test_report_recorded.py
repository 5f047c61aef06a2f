# SPDX-License-Identifier: MIT
"""The page of a recording, and of its replays: tasks one by one, and what was recorded first."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from schedlab.errors import UsageError
from schedlab.measure.recording import import_trace
from schedlab.measure.replay import keep_recorded, load_recorded
from schedlab.report.write import write_report
from schedlab.runs.run import make_plan, run_plan
from schedlab.stats.sentences import show_number

TRACE = Path(__file__).resolve().parent / "traces" / "trace-cmd.txt"


@pytest.fixture
def recording(build, tmp_path):
    """A trace of Linux as the folder of a run, and its `run.json`."""
    return tmp_path / "recording", import_trace(TRACE, tmp_path / "recording")


@pytest.fixture
def replays(recording, simulator, tmp_path):
    folder, _ = recording
    plan = make_plan(workloads=[load_recorded(folder)], policies=["rr", "cfs"], out=tmp_path / "replays")
    run_plan(plan)
    keep_recorded(folder, plan.out, plan.workloads[0])
    return plan.out


def write(folder: Path) -> str:
    write_report(folder, folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


def table_after(text: str, title: str) -> list[list[str]]:
    """Cells of the first table after a title, its head first."""
    table = text[text.index(title) :]
    rows = re.findall(r"<tr>(.*?)</tr>", table[: table.index("</table>")], re.DOTALL)
    return [
        [re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
        for row in rows
    ]


def disturb(path: Path, share: float) -> None:
    run = json.loads(path.read_text())
    run["recording"]["disturbance"] = {
        "others_ns": 1_067_000_000,
        "lost_ns": 292_000_000,
        "steal_ns": 0,
        "share": share,
    }
    path.write_text(json.dumps(run))


def test_a_recording_has_its_tasks_and_misses_no_program(recording):
    folder, run = recording
    assert run["status"] == "ok"
    text = write(folder)
    assert "Not everything could be shown" not in text, "weights come from the priorities"
    assert "Fairness over time" in text
    head, *rows = table_after(text, "<h3>Task by task</h3>")
    assert head[:3] == ["task", "PID", "CPU time"]
    assert [(row[0], row[1]) for row in rows] == [(task["name"], str(task["pid"])) for task in run["tasks"]]


def test_a_replay_has_the_recorded_run_as_its_first_row(recording, replays):
    _, run = recording
    text = write(replays)
    head, first, *others = table_after(text, "<h3>The numbers</h3>")
    assert first[:2] == ["as recorded: linux, Linux", "ok"]
    assert first[2 + head[2:].index("mean turnaround")] == show_number(
        "turnaround_ns_mean", run["metrics"]["turnaround_ns_mean"]
    )
    assert [row[0] for row in others] == ["rr", "cfs"]
    titles = re.findall(r"<summary>([^<]*)</summary>(?=<div)", text)
    assert titles[-3:] == ["as recorded", "rr", "cfs"]
    for title in titles[-3:]:
        rows = table_after(text, f"<summary>{title}</summary><div")[1:]
        assert [row[0] for row in rows] == [task["name"] for task in run["tasks"]]


@pytest.mark.full
def test_times_of_a_disturbed_recording_stand_beside_no_others(replays):
    path = next(replays.rglob("recorded.json"))
    disturb(path, 0.05)
    assert "While it was recorded,</strong> other processes had 1067.0\u00a0ms" in write(replays)
    disturb(path, 0.5)
    text = write(replays)
    _, first, *_ = table_after(text, "<h3>The numbers</h3>")
    assert first[1] == "disturbed" and set(first[2:]) == {"-"}
    assert "over 10%, so its times are not compared" in text
    assert "<summary>as recorded</summary>" not in text


def test_a_damaged_file_is_named(replays):
    path = next(replays.rglob("recorded.json"))
    path.write_text("[1]")
    with pytest.raises(UsageError, match="recorded.json: damaged"):
        write(replays)
