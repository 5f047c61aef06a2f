# SPDX-License-Identifier: MIT
"""The programs of reports 2 and 4, all loads, under FIFO, RR and OTHER: a small share of each."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from schedlab.hosts.linux.host import TASKS_FILE, read_played
from schedlab.runs.run import make_plan, run_plan
from schedlab.show.usage import COLUMNS, usage_rows

REPORTS = {
    "report-2": (("cpu", "io", "mixed"), (5, 70, 300)),
    "report-4": (("pi", "rw", "mixed"), (5, 20, 200)),
}
CLASSES = ("SCHED_FIFO:10", "SCHED_RR:10", "SCHED_OTHER")


def may_use_realtime() -> bool:
    return subprocess.run(["chrt", "-f", "1", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.full
@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.skipif(not may_use_realtime(), reason="needs CAP_SYS_NICE: run as root")
def test_one_plan_runs_every_program_load_and_class(build, report, tmp_path):
    programs, loads = REPORTS[report]
    workloads = {f"{report}/{program}:processes={load}": load for program in programs for load in loads}
    size = {"cpus": 1, "scale": 0.0002, "keep_parquet": False}
    result = run_plan(
        make_plan(workloads=list(workloads), policies=CLASSES, host="linux", out=tmp_path / "linux", **size)
    )
    assert {run["error"] for run in result.runs} == {None}
    rows = usage_rows(result.runs)
    assert len(rows) == 9 * 3
    for row, load in zip(rows, [load for load in workloads.values() for _ in CLASSES], strict=True):
        assert row["user_ns"]["mean"] + row["system_ns"]["mean"] > 0
        assert 0 < row["cpu_percent"]["mean"] <= 101
        assert row["switches_voluntary"]["mean"] >= load, "each process ends by itself"
        assert set(COLUMNS) <= set(row)
    for run in result.runs:
        assert run["metrics"]["tasks_ended"] == workloads_load(run["workload"]) + 1
    # Today's default class beside the one that the reports had: cfs, in the simulator.
    simulated = run_plan(make_plan(workloads=list(workloads), policies=["cfs"], out=tmp_path / "sim", **size))
    hashes = {run["workload"]: run["program_hash"] for run in result.runs}
    assert {run["workload"]: run["program_hash"] for run in simulated.runs} == hashes, "the same programs"
    assert {run["error"] for run in simulated.runs} == {None}


@pytest.mark.skipif(not may_use_realtime(), reason="needs CAP_SYS_NICE: run as root")
@pytest.mark.parametrize(
    "workload", ["report-2/cpu:processes=2,fork=0ms", "report-4/pi:processes=2,compute=290ms,fork=0ms"]
)
def test_a_process_outlasts_a_slice_of_rr_on_a_machine_of_any_speed(build, workload, tmp_path):
    """The reports' lengths are CPU time: as a number of iterations they took a tenth on newer machines, and no slice ended."""
    result = run_plan(
        make_plan(
            workloads=[workload], policies=CLASSES, host="linux", out=tmp_path, cpus=1, keep_parquet=False
        )
    )
    if void := [run["error"] for run in result.runs if run["error_kind"] in ("void", "late")]:
        pytest.skip(f"this machine is too busy: {void[0]}")
    assert {run["error"] for run in result.runs} == {None}
    for run in result.runs:
        played = read_played(Path(run["directory"]) / TASKS_FILE)
        took = [task["run_ns"] for task in played.tasks if task["name"] == "pi"]
        assert took == pytest.approx([290_000_000] * 2, rel=0.1)
    fifo, rr, _ = (run["metrics"]["switches_involuntary"] for run in result.runs)
    if fifo > 2:
        pytest.skip(f"this machine is too busy: tasks above them preempted those of FIFO {fifo:.0f} times")
    assert rr > fifo, "two of 290 ms change places every 100 ms, and under FIFO never"


def workloads_load(name: str) -> int:
    """Processes of a workload, by its name; 5 is the default, and not shown."""
    _, _, rest = name.partition("processes=")
    return int(rest.partition(",")[0]) if rest else 5
