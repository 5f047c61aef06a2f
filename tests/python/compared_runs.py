# SPDX-License-Identifier: MIT
"""Runs with known metrics, to be compared."""

from __future__ import annotations

from schedlab.runs.compare import COMPARED


def run_of(policy, seed, value, *, program="p", status="ok", **fields):
    """A run whose metrics all have one value, or those of a dict."""
    values = value if isinstance(value, dict) else dict.fromkeys(COMPARED, value)
    return {"workload": "w", "host": "sim", "cpus": 1, "policy": policy, "seed": seed,
            "status": status, "error": None if status == "ok" else "stall",
            "program_hash": f"{program}{seed}", "record_hash": f"{policy}{seed}{value}",
            "metrics": values if status == "ok" else {}} | fields  # fmt: skip


def runs_of(policy, values, **fields):
    return [run_of(policy, seed, value, **fields) for seed, value in enumerate(values, 1)]


def noisy(rng, mean, n=12):
    return (mean + rng.normal(0, 1, n)).tolist()


def counted(policy, ended, started, *, tasks=20):
    """Runs of two seeds in which so many tasks got so far."""
    return [
        run_of(policy, seed, {
            "tasks": tasks, "tasks_started": s, "tasks_ended": e, "wait_ns_mean": 7.0,
            "turnaround_ns_mean": 5.0, "slowdown_max": 2.0 if e else None, "response_ns_p99": 3.0,
        })
        for seed, (e, s) in enumerate(zip(ended, started, strict=True), 1)
    ]  # fmt: skip
