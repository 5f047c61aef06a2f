# SPDX-License-Identifier: MIT
"""The metrics of a run as tables: `tasks.parquet` and `metrics.parquet`.

Must stay true: a table has the same columns, of the same types, whatever came of a run.
Read next: records/parquet.py, which writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..records.parquet import Column, table
from .dictionary import DICTIONARY, RunMetrics

if TYPE_CHECKING:
    import polars as pl

_MAY_BE_ABSENT = {"first_run_ns", "end_ns", "turnaround_ns", "response_ns", "wakeup_ns_max"}


def task_columns(
    metrics: RunMetrics, *, names: Sequence[str] | None = None, classes: Sequence[int] | None = None
) -> dict[str, Any]:
    """Task-level metrics, with what the program calls each task.

    `names` and `classes` are name and class number of the task with pid i + 1; where they are given,
    `class` and `name` follow `task` in the columns of `RunMetrics.tasks`.
    """
    index = (metrics.tasks["task"].astype(np.int64) - 1).tolist()
    labels = {
        label: [source[i] if 0 <= i < len(source) else None for i in index]
        for label, source in (("class", classes), ("name", names))
        if source is not None
    }
    return {"task": metrics.tasks["task"]} | labels | metrics.tasks


def tasks_table(
    metrics: RunMetrics, *, names: Sequence[str] | None = None, classes: Sequence[int] | None = None
) -> pl.DataFrame:
    """Task-level metrics as a table."""
    return table_of(task_columns(metrics, names=names, classes=classes))


def as_columns(columns: dict[str, Any]) -> dict[str, Column]:
    """Task-level metrics as the columns of a table.

    Of what `task_columns` returned, of one run or of several, one after the other. One row per task; what
    did not come to pass, or is not defined, is null.
    """
    return {name: _as_column(name, values) for name, values in columns.items()}


def _as_column(name: str, values: Any) -> Column:
    """One column of it."""
    if not isinstance(values, np.ndarray):
        is_valid = np.array([value is not None for value in values], bool)
        given = next((value for value in values if value is not None), "")
        if isinstance(given, str):
            return Column(values, is_valid)
        return Column(np.array([given if value is None else value for value in values]), is_valid)
    if name in _MAY_BE_ABSENT:
        return Column(values, values != -1)
    return Column(values, ~np.isnan(values) if values.dtype.kind == "f" else None)


def table_of(columns: dict[str, Any]) -> pl.DataFrame:
    """Make a table of task-level metrics."""
    return table(as_columns(columns))


def metric_columns(metrics: RunMetrics) -> dict[str, Column]:
    """Run- and CPU-level metrics as the columns of a long table.

    `metric`, `cpu` (null at run level), `value`, `unit`.
    """
    names, values = [*metrics.run], [*metrics.run.values()]
    for name, of_cpus in metrics.cpus.items():
        if name != "cpu":
            names += [f"cpu_{name}"] * len(of_cpus)
            values += of_cpus.tolist()
    n_run = len(metrics.run)
    n_kinds = (len(values) - n_run) // max(1, len(metrics.cpus["cpu"])) if "cpu" in metrics.cpus else 0
    cpu = np.concatenate((np.full(n_run, -1), np.tile(metrics.cpus.get("cpu", np.zeros(0)), n_kinds)))
    number = np.array([np.nan if value is None else value for value in values], float)
    return {
        "metric": Column(names),
        "cpu": Column(cpu.astype(np.int64), np.arange(len(cpu)) >= n_run),
        "value": Column(number, ~np.isnan(number)),
        "unit": Column([DICTIONARY[name].unit for name in names]),
    }


def metrics_table(metrics: RunMetrics) -> pl.DataFrame:
    """Run- and CPU-level metrics as a table; see `metric_columns`."""
    return table(metric_columns(metrics))
