# SPDX-License-Identifier: MIT
"""The programs of reports 2 and 4, all loads, under FIFO, RR and OTHER: a small share of each."""

from __future__ import annotations

import subprocess

import pytest

from schedlab.runs.run import Plan, run_plan
from schedlab.show.usage import COLUMNS, usage_rows

REPORTS = {"report-2": (("cpu", "io", "mixed"), (5, 70, 300)), "report-4": (("pi", "rw", "mixed"), (5, 20, 200))}
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
    result = run_plan(Plan(workloads=list(workloads), policies=CLASSES, host="linux", out=tmp_path / "linux", **size))
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
    simulated = run_plan(Plan(workloads=list(workloads), policies=["cfs"], out=tmp_path / "sim", **size))
    hashes = {run["workload"]: run["program_hash"] for run in result.runs}
    assert {run["workload"]: run["program_hash"] for run in simulated.runs} == hashes, "the same programs"
    assert {run["error"] for run in simulated.runs} == {None}


def workloads_load(name: str) -> int:
    """Processes of a workload, by its name; 5 is the default, and not shown."""
    _, _, rest = name.partition("processes=")
    return int(rest.partition(",")[0]) if rest else 5
