# SPDX-License-Identifier: MIT
"""Runs by threads and by worker processes: the same, whoever does them, and none is lost."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

import schedlab
from schedlab.hosts.sim import SimHost
from schedlab.runs import worker_process, workers
from schedlab.runs.plan import make_plan
from schedlab.runs.run import run_plan

WORKLOADS, POLICIES = ["mixed", "textbook/rr"], ["rr", "mlfq"]


@pytest.fixture
def processes(monkeypatch):
    """Have a process started as soon as one may be; the list of those that were."""
    made: list = []

    class Noted(worker_process.WorkerProcess):
        def __init__(self):
            super().__init__()
            self.answers: list = []
            made.append(self)

        def do(self, context, case):
            self.answers.append(super().do(context, case))
            return self.answers[-1]

    monkeypatch.setattr(workers, "WorkerProcess", Noted)
    monkeypatch.setattr(workers.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(workers, "PROCESS_SECONDS", 0)
    monkeypatch.setattr(workers, "_RUNS_TIMED", 1)
    return made


def files_below(folder: Path) -> dict[str, bytes]:
    """Contents by path, with the folder's own name taken out of lists of runs."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    here = json.dumps(str(folder.absolute()))[1:-1].encode()
    return {
        name: content.replace(here, b"OUT") if name.endswith(".json") else content
        for name, content in found.items()
    }


@pytest.mark.full
def test_a_sweep_leaves_what_a_run_of_all_seeds_leaves(tmp_path, processes, monkeypatch):
    result = schedlab.sweep(WORKLOADS, POLICIES, seeds=12, out=tmp_path / "sweep")
    assert result.is_good
    assert any(answer for each in processes for answer in each.answers)
    monkeypatch.setattr(workers, "PROCESS_SECONDS", math.inf)
    (folder,) = set(result.cells["directory"])
    plan = make_plan(WORKLOADS, POLICIES, tmp_path / "run", n_seeds=12)
    run_plan(plan)
    found = files_below(Path(folder))
    assert len(found) == 313
    assert found == files_below(plan.out)


@pytest.mark.full
def test_tables_are_the_same_whether_runs_are_kept_or_not(tmp_path, processes):
    kept, forgotten = (
        schedlab.sweep(WORKLOADS, POLICIES, seeds=8, cpus=[2, 3], out=out) for out in (tmp_path, None)
    )
    for name in ("runs", "tasks", "comparisons", "warnings", "cells"):
        tables = [
            getattr(each, name).drop("directory", "seconds", strict=False) for each in (kept, forgotten)
        ]
        assert_frame_equal(*tables)
    assert len(processes) == 2


@pytest.mark.parametrize("start", ["raise SystemExit(3)", "import os; os.read(0, 1); os.abort()"])
def test_a_worker_process_that_dies_loses_no_run(tmp_path, processes, monkeypatch, start):
    monkeypatch.setattr(worker_process, "_START", start)
    result = run_plan(make_plan(["textbook/rr"], ["rr"], tmp_path, n_seeds=30))
    assert result.is_good
    assert len(result.runs) == 30
    # It is tried once.
    assert [each.answers for each in processes] == [[None]]


def test_a_host_that_cannot_be_sent_is_used_here(tmp_path, processes, monkeypatch):
    monkeypatch.setattr(SimHost, "__reduce__", lambda self: pytest.fail, raising=False)
    assert run_plan(make_plan(["textbook/rr"], ["rr"], tmp_path, n_seeds=30)).is_good
    assert [each.answers for each in processes] == [[None]]


def test_an_error_of_ours_in_a_worker_process_is_raised_here(tmp_path, processes, monkeypatch):
    damaged = (
        "import schedlab.runs.case as case; case.blank_run = None; " + worker_process._START.split("; ", 2)[2]
    )
    monkeypatch.setattr(
        worker_process, "_START", "; ".join([*worker_process._START.split("; ", 2)[:2], damaged])
    )
    with pytest.raises(TypeError, match="not callable"):
        run_plan(make_plan(["textbook/rr"], ["rr"], tmp_path, n_seeds=30))


@pytest.mark.full
def test_an_interrupt_ends_worker_processes(tmp_path, processes):
    def stop(run):
        if processes and processes[0].answers:
            raise KeyboardInterrupt

    result = run_plan(make_plan(["textbook/rr"], ["rr"], tmp_path, n_seeds=2000), on_result=stop)
    assert result.is_interrupted
    assert 0 < len(result.runs) < 2000
    assert not any(each._process.is_alive() for each in processes)
    # What is left of a run is whole.
    assert all((path / "run.json").is_file() for path in tmp_path.glob("textbook/rr/rr/seed-*"))
