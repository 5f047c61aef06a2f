# SPDX-License-Identifier: MIT
"""Every listed workload runs under every listed policy, to its end, and is consistent.

What each of them has to show is in the other files of this folder and in
tests/python/test_workloads.py; here nothing may be missing, or stand still.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from schedlab.policy.find import list_policies
from schedlab.workload.find import list_workloads

POLICIES = list_policies()
WORKLOADS = [info.name for info in list_workloads()]
#: What the reports asked or wished to ask, and their other loads.
OPTIONS = [
    "report-3/matrix:yields=64",
    "report-3/matrix:yields=8",
    "report-3/matrix:growth=8",
    "report-3/matrix:loads=unequal",
    "report-3/matrix:order=crossed,loads=unequal",
    "report-1/io-bound:processes=50",
    *(f"report-2/{name}:processes={n}" for name in ("cpu", "io", "mixed") for n in (70, 300)),
    *(f"report-4/{name}:processes={n}" for name in ("pi", "rw", "mixed") for n in (20, 200)),
]
#: Some are only watched for a while, and have tasks that never end.
WATCHED_NS = {"report-3/shares": 20e9, "server/storm": 1e9, "server/web": 2.5e9}


@pytest.fixture
def runs_of(root, simulator, tmp_path):
    """Function that runs workloads under policies, as a user does; the runs, one seed each."""

    def call(workloads, policies, *arguments):
        done = subprocess.run(
            [sys.executable, "-m", "schedlab", "run", *workloads, "--policy", ",".join(policies),
             "--seeds", "1", *arguments, "--json", "--out", "out"],
            env=os.environ | {"PYTHONPATH": str(root / "python")}, cwd=tmp_path,
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["runs"]

    return call


@pytest.mark.full
def test_every_workload_runs(runs_of):
    runs = runs_of(WORKLOADS, ["rr"])
    assert [run["workload"] for run in runs] == WORKLOADS
    for run in runs:
        assert (run["status"], run["consistency"], run["error"]) == ("ok", "ok", None)
        assert has_ended(run)


def has_ended(run):
    """Whether all tasks have, or it was watched for as long as it says."""
    if run["workload"] in WATCHED_NS:
        return run["metrics"]["elapsed_ns"] >= WATCHED_NS[run["workload"]] and run["metrics"]["tasks"] >= 8
    return run["metrics"]["tasks_ended"] == run["metrics"]["tasks"] > 0


@pytest.mark.full
def test_every_workload_runs_under_every_policy(runs_of):
    runs = runs_of(WORKLOADS, POLICIES)
    assert len(runs) == len(WORKLOADS) * len(POLICIES)
    for run in runs:
        what = (run["workload"], run["policy"])
        assert (run["status"], run["consistency"]) == ("ok", "ok"), (what, run["error"])
        assert has_ended(run), what


@pytest.mark.full
def test_every_option_of_the_reports_runs(runs_of):
    for run in runs_of(OPTIONS, ["credit_report"]):
        assert (run["status"], run["consistency"]) == ("ok", "ok"), (run["workload"], run["error"])
        assert run["metrics"]["tasks_ended"] == run["metrics"]["tasks"]


@pytest.mark.full
@pytest.mark.parametrize(("name", "alike"), [("classics/requests", ()), ("mixed", ("edf", "rr"))])
def test_record_hashes_differ_pairwise(runs_of, name, alike):
    """No two policies make the same run; without deadlines edf takes turns, as rr."""
    runs = runs_of([name], POLICIES)
    assert len({run["program_hash"] for run in runs}) == 1
    policies = {}
    for run in runs:
        policies.setdefault(run["record_hash"], []).append(run["policy"])
    assert sum(map(len, policies.values())) == len(POLICIES)
    assert [tuple(group) for group in policies.values() if len(group) > 1] == ([alike] if alike else [])
