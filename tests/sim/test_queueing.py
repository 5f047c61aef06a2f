# SPDX-License-Identifier: MIT
"""The simulator against queueing theory: M/M/1, 200 seeds.

A run of a queue is one long correlated sample. Its busy cycles, from one
arrival that finds the CPU idle to the next, are independent, so the mean time
in the system is a ratio of two means over cycles, with an interval from their
variances (Kleinrock 1975; Law and Kelton's regenerative method). It needs no
warm-up: a run starts with a new cycle.

A simulator that loses an event, wakes late or counts the wrong task as first
gives means that lie outside the intervals for nearly every seed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from schedlab.records.file import read_records
from schedlab.runs.run import make_plan, run_plan

pytestmark = pytest.mark.full

NR_SEEDS = 200
NR_TASKS = 4000
RHO = 0.5
MEAN_SERVICE_NS = 10_000_000
#: Of 200 intervals at 95 %, this many hold the mean with probability above 0.999.
HELD_MIN, HELD_MAX = 180, 199

ARRIVE, STOP = 1, 4
EXITED = 3


def stays(records):
    """Arrival and end in ns of every task that ended, sorted by arrival; no task sleeps."""
    events = records.events
    arrive = events[events["kind"] == ARRIVE]
    end = events[(events["kind"] == STOP) & (events["flags"] == EXITED)]
    arrive = arrive[np.argsort(arrive["task"], kind="stable")]
    end = end[np.argsort(end["task"], kind="stable")]
    assert np.array_equal(arrive["task"], end["task"])
    order = np.argsort(arrive["t_ns"], kind="stable")
    return arrive["t_ns"][order].astype(np.int64), end["t_ns"][order].astype(np.int64)


def regenerative_interval(arrived_ns, ended_ns, z=1.96):
    """Estimate, low and high of the mean stay in ns from independent busy cycles: first come, first served, one server."""
    finds_idle = np.concatenate(([True], arrived_ns[1:] >= np.maximum.accumulate(ended_ns)[:-1]))
    first = np.flatnonzero(finds_idle)
    # The last cycle may be cut off by the end of the run.
    per_cycle = np.add.reduceat((ended_ns - arrived_ns).astype(float), first)[:-1]
    n_in_cycle = np.diff(first).astype(float)
    n = len(per_cycle)
    ratio = per_cycle.sum() / n_in_cycle.sum()
    rest = per_cycle - ratio * n_in_cycle
    error = math.sqrt((rest @ rest) / (n - 1) / n) / n_in_cycle.mean()
    return ratio, ratio - z * error, ratio + z * error


def test_interval_refuses_nothing_it_should_hold():
    """On a schedule worked out by hand the estimate is exact."""
    arrived = np.array([0, 1, 10, 20, 21], dtype=np.int64)
    ended = np.array([4, 7, 12, 23, 25], dtype=np.int64)
    estimate, low, high = regenerative_interval(arrived, ended)
    # Cycles (4 + 6, 2 tasks) and (2, 1 task); the one at 20 is cut off.
    assert estimate == pytest.approx(12 / 3)
    assert low < estimate < high


def test_mm1_mean_stay_lies_in_its_interval(tmp_path):
    plan = make_plan(
        workloads=[f"poisson:rho={RHO},count={NR_TASKS}"],
        policies=["fifo"],
        out=tmp_path,
        cpus=1,
        n_seeds=NR_SEEDS,
        keep_parquet=False,
    )
    result = run_plan(plan)
    assert result.is_good, [run["error"] for run in result.runs if run["error"]][:3]
    theory_ns = MEAN_SERVICE_NS / (1 - RHO)
    estimates, held = [], 0
    for run in result.runs:
        arrived, ended = stays(read_records(f"{run['directory']}/records.slr"))
        assert len(arrived) == NR_TASKS
        estimate, low, high = regenerative_interval(arrived, ended)
        estimates.append(estimate)
        held += low <= theory_ns <= high
    assert HELD_MIN <= held <= HELD_MAX, f"{held} of {NR_SEEDS} intervals hold {theory_ns / 1e6} ms"
    # And the mean over all runs, which is far more precise than any of them.
    assert np.mean(estimates) == pytest.approx(theory_ns, rel=0.02)


def test_wait_is_the_same_under_round_robin_on_average(tmp_path):
    """Processor sharing has the same mean stay as FCFS in M/M/1.

    Round-robin with a short quantum comes close to it; FCFS with a wrong clock,
    or a round-robin that forgets a task, does not.
    """
    plan = make_plan(
        workloads=[f"poisson:rho={RHO},count={NR_TASKS}"],
        policies=["fifo", "rr"],
        settings=["rr.slice_ns=1ms"],
        out=tmp_path,
        cpus=1,
        n_seeds=20,
        keep_parquet=False,
    )
    result = run_plan(plan)
    assert result.is_good
    mean_ns = {
        name: np.mean([run["metrics"]["turnaround_ns_mean"] for run in result.runs if run["policy"] == name])
        for name in ("fifo", "rr")
    }
    assert mean_ns["rr"] == pytest.approx(mean_ns["fifo"], rel=0.05)
    assert mean_ns["rr"] != mean_ns["fifo"]
