# SPDX-License-Identifier: MIT
"""Find the numbers that expressions ask for in the folders of runs.

A metric is one of
        makespan_ns             of the dictionary (`schedlab metrics`), of the whole run
        mean turnaround_ns      a statistic of a column of tasks.parquet, over the tasks
                                that a fourth key names: "loop", "cpu*", "!parent" (all others)
        counted sched           instructions that the teaching kernel counted, by what for
        scheduling_ns           time in the scheduler: what the simulator was told to charge,
                                or what the kernel counted as choosing and switching
        ticks                   what a program of the kernel printed

Must stay true: a failed run gives no number, and its error is the reason.
Read next: runs.py, where the folders come from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.errors import UsageError, did_you_mean
from schedlab.metrics.dictionary import DICTIONARY
from schedlab.metrics.fairness import jain

from .formula import Cell, MissingError
from .spec import Runs

COUNTED = "counted "
SCHEDULING = "scheduling_ns"


def _quantile(q: float) -> Callable[[np.ndarray], float]:
    """Nearest rank, as everywhere in schedlab."""
    return lambda values: np.quantile(values, q, method="inverted_cdf")


STATISTICS: dict[str, Callable[[np.ndarray], Any]] = {
    "mean": np.mean, "sum": np.sum, "min": np.min, "max": np.max, "count": len,
    "sd": lambda values: np.std(values, ddof=1) if len(values) > 1 else float("nan"),
    "p25": _quantile(0.25), "p50": _quantile(0.5), "p75": _quantile(0.75), "p95": _quantile(0.95),
    "p99": _quantile(0.99), "iqr": lambda values: _quantile(0.75)(values) - _quantile(0.25)(values),
    "jain": jain,
}  # fmt: skip


@dataclass
class Done:
    """A set of runs, done or not."""

    runs: Runs  #: What was to be done.
    #: Runs by workload and policy, as the experiment calls them.
    found: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    problem: str = ""  #: Why nothing was run; empty where it was.
    seconds: float = 0.0  #: Time on the wall clock that it took now.
    n_new: int = 0  #: Runs that were done now; the others were there.

    @property
    def n_runs(self) -> int:
        """All runs of the set."""
        return sum(map(len, self.found.values()))

    def good(self, workload: str, policy: str) -> list[dict[str, Any]]:
        """Good runs of a workload under a policy."""
        if self.problem:
            raise MissingError(self.problem)
        runs = self.found.get((workload, policy))
        if runs is None:
            workloads = list(dict.fromkeys(key[0] for key in self.found))
            policies = list(dict.fromkeys(key[1] for key in self.found))
            hint = did_you_mean(workload, workloads) or did_you_mean(policy, policies)
            raise MissingError(f"{self.runs.title} has no runs of {workload} under {policy}{hint}")
        good = [run for run in runs if run["status"] == "ok"]
        if not good:
            raise MissingError(f"{workload} under {policy} failed: {runs[0]['error']}")
        return good


class Samples:
    """All runs of an experiment, to be asked for numbers. `done` is by name of the set."""

    def __init__(self, done: Mapping[str, Done]):
        self.done = done

    def look_up(self, name: str, keys: tuple[str, ...]) -> Cell:
        """Find the numbers of a cell."""
        workload, policy, metric, *pattern = keys
        runs = self.done[name].good(workload, policy)
        values = {run["seed"]: _number(run, metric, pattern[0] if pattern else "*") for run in runs}
        return Cell(values, {run["seed"]: run["directory"] for run in runs})

    def all_values(self, name: str, workload: str, policy: str, column: str, pattern: str) -> np.ndarray:
        """Return a column of all tasks of all seeds, for a box plot."""
        runs = self.done[name].good(workload, policy)
        return np.concatenate([_of_tasks(run["directory"], column, pattern) for run in runs])


def _number(run: dict[str, Any], metric: str, pattern: str) -> float:
    """One number of one run."""
    statistic, _, column = metric.partition(" ")
    value: float | None
    if metric == SCHEDULING:
        value = _scheduling_ns(run)
    elif metric.startswith(COUNTED):
        value = _counted(run, column)
    elif column:
        if statistic not in STATISTICS:
            raise MissingError(f"there is no statistic '{statistic}'{did_you_mean(statistic, STATISTICS)}")
        values = _of_tasks(run["directory"], column, pattern)
        if not len(values):
            raise MissingError(f"no task '{pattern}' has a {column} in {run['directory']}")
        value = float(STATISTICS[statistic](values))
    else:
        if metric not in run["metrics"]:
            raise MissingError(
                f"there is no metric '{metric}'{did_you_mean(metric, run['metrics'] or DICTIONARY)}"
            )
        value = run["metrics"][metric]
    if value is None or not np.isfinite(value):
        raise MissingError(f"{metric} is not defined in {run['directory']}")
    return value


def _counted(run: dict[str, Any], part: str) -> int:
    """Instructions that went into a part of the kernel while the policy was in charge."""
    file = Path(run["directory"]) / "run.json"
    counts = json.loads(file.read_text(encoding="utf-8"))["host_answer"].get("overhead", {})
    parts = counts.get(run["policy"].partition(":")[0], {})
    if part not in parts:
        raise MissingError(
            f"'{COUNTED}{part}' is counted in the teaching kernel only{did_you_mean(part, parts)}"
        )
    return parts[part]["instructions"]


def _scheduling_ns(run: dict[str, Any]) -> int:
    """Time in the scheduler, without idle time."""
    if run["host"] != "kernel":
        return run["metrics"]["overhead_ns"]
    # While instructions are counted, each takes a nanosecond.
    return _counted(run, "sched") + _counted(run, "switch")


@lru_cache(maxsize=4096)
def _table(folder: str) -> Any:
    """Tasks of a run; experiments ask for many columns of few runs."""
    import polars as pl

    file = Path(folder) / "tasks.parquet"
    try:
        table = pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UsageError(
            f"{file}: damaged ({error}); remove its folder, and the run is done again"
        ) from error
    return table.with_columns(pl.col("name").cast(pl.String))


def _of_tasks(folder: str, column: str, pattern: str) -> np.ndarray:
    """A column of the tasks of a name; `!name` is all others."""
    table = _table(folder)
    if column not in table.columns:
        raise MissingError(f"tasks have no '{column}'{did_you_mean(column, table.columns)}")
    wanted = pattern.removeprefix("!")
    chosen = [fnmatchcase(name, wanted) != pattern.startswith("!") for name in table["name"].to_list()]
    values = table.filter(chosen)[column].drop_nulls().to_numpy().astype(np.float64)
    return values[np.isfinite(values)]
