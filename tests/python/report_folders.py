# SPDX-License-Identifier: MIT
"""Folders of runs for tests of the report: real ones, and one written by hand."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl

from schedlab.metrics.dictionary import compute_metrics
from schedlab.metrics.tables import tasks_table
from schedlab.metrics.timeline import Timeline
from schedlab.records.file import RECORD_DTYPE, Kind, Stop, read_records, write_records
from schedlab.runs.run import make_plan, run_plan

EVIL = "<script>window.pwned = 1</script>"

WORKLOAD = """
[workload]
title = "Two that compute, two that nap"
question = "Who is served first?"
tick = "10ms"
cpus = 2
[[task]]
name = "hog"
count = 3
weight = [400, 200, 100]
phases = [{run = "exp(150ms)"}]
[[task]]
name = "nap"
count = 2
phases = [{loop = 12, do = [{run = "exp(3ms)"}, {sleep = "exp(9ms)"}]}]
"""

BROKEN = """// SPDX-License-Identifier: MIT OR GPL-2.0-only
int <script> oops;
"""


def make_runs(folder: Path, *, policies=("rr", "cfs"), n_seeds=6, is_broken=False) -> Path:
    """Run a small workload; the folder that `schedlab run --out` leaves."""
    folder.mkdir(parents=True, exist_ok=True)
    workload = folder / "naps.toml"
    workload.write_text(WORKLOAD)
    chosen = list(policies)
    if is_broken:
        broken = folder / "broken.bpf.c"
        broken.write_text(BROKEN)
        chosen.append(str(broken))
    out = folder / "runs"
    run_plan(make_plan(workloads=[str(workload)], policies=chosen, out=out, n_seeds=n_seeds))
    return out


def rename_tasks(out: Path, names: dict[str, str]) -> None:
    """Change names of tasks in the tables, as a folder from a stranger may have them."""
    for path in out.rglob("tasks.parquet"):
        table = pl.read_parquet(path)
        table.with_columns(pl.col("name").cast(pl.String).replace(names)).write_parquet(path)


def many_slices(folder: Path, *, n_slices: int, n_cpus: int = 4, n_tasks: int = 40) -> Path:
    """A folder with one run in which tasks take turns, written by hand.

    Slices last 1 to 5 us; every CPU has its own tasks, and is never idle.
    """
    home = folder / "turns" / "hand" / "seed-1"
    home.mkdir(parents=True)
    per_cpu = n_slices // n_cpus
    rng = np.random.default_rng(1)
    events = [(0, pid, (pid - 1) % n_cpus, Kind.ARRIVE, 0, 0) for pid in range(1, n_tasks + 1)]
    parts = [np.array(events, RECORD_DTYPE)]
    for cpu in range(n_cpus):
        own = np.arange(cpu + 1, n_tasks + 1, n_cpus)
        length = rng.integers(1000, 5000, per_cpu)
        part = np.zeros(2 * per_cpu, RECORD_DTYPE)
        end = np.cumsum(length)
        part["task"] = np.repeat(np.resize(own, per_cpu), 2)
        part["cpu"] = cpu
        part["t_ns"][0::2], part["t_ns"][1::2] = end - length, end
        part["kind"][0::2], part["kind"][1::2] = Kind.RUN, Kind.STOP
        part["flags"][1::2] = Stop.PREEMPTED
        part["arg"][1::2] = length
        parts.append(part)
    everything = np.concatenate(parts)
    everything = everything[np.argsort(everything["t_ns"], kind="stable")]
    write_records(home / "records.slr", everything, n_cpus=n_cpus)
    metrics = compute_metrics(Timeline(read_records(home / "records.slr")))
    names = [f"turn{pid}" for pid in range(1, n_tasks + 1)]
    tasks_table(metrics, names=names, classes=[0] * n_tasks).write_parquet(home / "tasks.parquet")
    run = {
        "workload": "turns", "policy": "hand", "host": "sim", "cpus": n_cpus, "seed": 1,
        "status": "ok", "error": None, "program_hash": "0" * 64, "record_hash": "1" * 64,
        "consistency": "ok", "physics": "ok", "metrics": metrics.run, "directory": "elsewhere",
    }  # fmt: skip
    (home / "run.json").write_text(json.dumps(run))
    return folder


class Page(HTMLParser):
    """What a page says: cells with their means, texts by element, scripts."""

    def __init__(self, text: str):
        super().__init__()
        self.cells: list[tuple[str, str, float]] = []
        self.elements: list[tuple[str, dict]] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.elements.append((tag, found))
        if tag == "script":
            self.scripts.append("")
            self._open.append(tag)
        if "data-mean" in found:
            mean = float(found["data-mean"])
            self.cells.append((found["data-policy"], found["data-metric"], mean))

    def handle_endtag(self, tag):
        if tag == "script":
            self._open.pop()

    def handle_data(self, data):
        if self._open:
            self.scripts[-1] += data
        else:
            self.texts.append(data)
