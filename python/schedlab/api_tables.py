# SPDX-License-Identifier: MIT
"""The tables that `schedlab.run` and `schedlab.sweep` return.

Each table has all its columns, of the same types, also when it has no rows: what
reads it need not ask what happened first.

Read next: api.py, the only caller.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from .metrics.dictionary import DICTIONARY
from .metrics.tables import table_of

_RUN_TEXTS = ("workload", "policy", "host")
_RUN_COLUMNS = {
    **dict.fromkeys(_RUN_TEXTS, pl.String), "cpus": pl.Int64, "seed": pl.Int64,
    **dict.fromkeys(("status", "error", "error_kind", "consistency", "physics", "program_hash", "policy_hash",
                     "record_hash"), pl.String),
    "tick_ns": pl.Int64, "directory": pl.String,
}  # fmt: skip
_TASK_COLUMNS: Any = {
    **dict.fromkeys(_RUN_TEXTS, pl.String), "cpus": pl.Int64, "seed": pl.Int64,
    "task": pl.UInt32, "class": pl.Int64, "name": pl.String,
    **dict.fromkeys(("arrival_ns", "first_run_ns", "end_ns", "turnaround_ns", "response_ns",
                     "wait_ns", "wait_ns_max", "run_ns", "blocked_ns"), pl.Int64),
    **dict.fromkeys(("deserved_ns", "share", "slowdown"), pl.Float64),
    "wakeups": pl.Int64, "wakeup_ns_mean": pl.Float64,
    **dict.fromkeys(("wakeup_ns_max", "switches_voluntary", "switches_involuntary", "migrations"),
                    pl.Int64),
}  # fmt: skip
_PAIR_COLUMNS = {
    "workload": pl.String,
    "host": pl.String,
    "cpus": pl.Int64,
    "policy_a": pl.String,
    "policy_b": pl.String,
}
_COMPARED_COLUMNS = {
    **dict.fromkeys(
        ("mean_a", "mean_b", "difference", "low", "high", "ratio", "ratio_low", "ratio_high"), pl.Float64
    ),
    "n": pl.Int64,
    "method": pl.String,
    "test": pl.String,
    **dict.fromkeys(("p_value", "p_adjusted", "cliffs_delta", "vargha_delaney", "standardised"), pl.Float64),
    "verdict": pl.String,
    "better": pl.String,
}


def runs_table(
    runs: Sequence[dict[str, Any]],
    cells: Sequence[int] | None = None,
    settings: Mapping[int, str] | None = None,
) -> pl.DataFrame:
    """Tabulate runs, one row each.

    `runs` are as `run_plan` lists them; in a sweep, `cells` has the cell that each comes from, and
    `settings`, by cell, what was set in it. See `api.Result`.
    """
    columns = _cell_columns(cells, settings)
    for name, kind in _RUN_COLUMNS.items():
        columns.append(pl.Series(name, [run.get(name) for run in runs], kind))
    knobs = dict.fromkeys((_base(run), knob) for run in runs for knob in run["knobs"])
    for policy, knob in knobs:
        # Variants of a policy, such as rr:slice_ns=1ms, share its columns.
        values = [run["knobs"].get(knob) if _base(run) == policy else None for run in runs]
        is_big = any(value is not None and value >= 1 << 63 for value in values)
        columns.append(pl.Series(f"{policy}.{knob}", values, pl.UInt64 if is_big else pl.Int64))
    metrics = [name for name, metric in DICTIONARY.items() if metric.level == "run"]
    for name in metrics:
        values = [run["metrics"].get(name) for run in runs]
        columns.append(pl.Series(name, values, pl.Float64, strict=False))
    return pl.DataFrame(columns)


def _base(run: dict[str, Any]) -> str:
    """The policy that a run's is a variant of."""
    return run["policy"].partition(":")[0]


def tasks_table(
    tables: Sequence[pl.DataFrame | None],
    cells: Sequence[int | Sequence[int]] | None = None,
    settings: Mapping[int, str] | None = None,
) -> pl.DataFrame:
    """Put the tasks of several sets of runs under one another.

    A table is `tasks.parquet` of each run with the run's keys, None where no run was good. In a sweep,
    `cells` has the cell of each table, or of each of its rows, and `settings`, by cell, what was set. See
    `api.Result`.
    """
    n_rows = [0 if table is None else table.height for table in tables]
    empty = pl.DataFrame(schema=_TASK_COLUMNS)
    present = [table.select(empty.columns).cast(_TASK_COLUMNS) for table in tables if table is not None]
    whole = pl.concat([empty, *present])
    if cells is None:
        return whole
    of_row = [
        number
        for cell, n in zip(cells, n_rows, strict=True)
        for number in (itertools.repeat(cell, n) if isinstance(cell, int) else cell)
    ]
    return pl.DataFrame([*_cell_columns(of_row, settings), *whole.get_columns()])


def computed_tasks(runs: Sequence[dict[str, Any]], columns: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Put the tasks of runs that were done in this process, or for it, under one another.

    At least one run as `run_plan` lists them; `columns` are their tasks, as `metrics.tables.task_columns`
    gives them. Returns what `tasks_table` takes: the runs' keys, then the columns of `tasks.parquet`.
    """
    n_rows = [len(each["task"]) for each in columns]
    keys = [
        pl.Series(name, [run[name] for run, n in zip(runs, n_rows, strict=True) for _ in range(n)])
        for name in (*_RUN_TEXTS, "cpus", "seed")
    ]
    whole = {}
    for name, first in columns[0].items():
        pieces = [each[name] for each in columns]
        whole[name] = np.concatenate(pieces) if isinstance(first, np.ndarray) else [*itertools.chain(*pieces)]
    return pl.DataFrame([*keys, *table_of(whole).get_columns()])


def _cell_columns(cells: Sequence[int] | None, settings: Mapping[int, str] | None) -> list[pl.Series]:
    """The columns that a sweep puts before a table's own."""
    if cells is None:
        return []
    texts = [(settings or {}).get(cell, "") for cell in cells]
    return [pl.Series("cell", list(cells), pl.Int64), pl.Series("settings", texts, pl.String)]


def comparisons_table(comparisons: Sequence[dict[str, Any]], *, is_swept: bool = False) -> pl.DataFrame:
    """Tabulate comparisons, one row per pair of policies and metric.

    Of `compare_runs`; with `settings` first in a sweep. See `api.Result`; `metric` and `unit` are null
    where a pair was refused.
    """
    schema: dict[str, Any] = {
        **({"settings": pl.String} if is_swept else {}), **_PAIR_COLUMNS,
        "metric": pl.String, "unit": pl.String, **_COMPARED_COLUMNS,
        "confidence": pl.Float64, "n_tests": pl.Int64, "is_deterministic": pl.Boolean,
        "error": pl.String,
    }  # fmt: skip
    rows = []
    for entry in comparisons:
        if entry["error"]:
            rows.append(entry)
        for name, metric in entry["metrics"].items():
            rows.append(entry | {"metric": name, "unit": DICTIONARY[name].unit} | metric)
    return _from_rows(rows, schema)


def warnings_table(comparisons: Sequence[dict[str, Any]], *, is_swept: bool = False) -> pl.DataFrame:
    """Tabulate the warnings of comparisons, each once.

    Columns `workload`, `host`, `cpus`, `policy`, `kind`, `metrics`, `text`, `hint`, with `settings` first
    in a sweep. The metrics are one text: pandas cannot take Polars's lists of texts.
    """
    schema: dict[str, Any] = {
        **({"settings": pl.String} if is_swept else {}),
        "workload": pl.String, "host": pl.String, "cpus": pl.Int64, "policy": pl.String,
        "kind": pl.String, "metrics": pl.String, "text": pl.String, "hint": pl.String,
    }  # fmt: skip
    rows = [
        entry | warning | {"metrics": ", ".join(warning["metrics"])}
        for entry in comparisons
        for warning in entry["warnings"]
    ]
    return _from_rows(rows, schema).unique(maintain_order=True)


def cells_table(done: Sequence[Any], swept: Sequence[str]) -> pl.DataFrame:
    """Tabulate the cells of a sweep.

    `done` are the answers of its cells, in order, and `swept` the settings that get a column. See
    `api.Sweep`.
    """
    schema: dict[str, Any] = {
        "cell": pl.Int64, "seed": pl.Int64, "cpus": pl.Int64,
        **dict.fromkeys(swept, pl.String), "settings": pl.String, "status": pl.String,
        "error": pl.String, "error_kind": pl.String, "seconds": pl.Float64, "n_runs": pl.Int64,
        "directory": pl.String,
    }  # fmt: skip
    rows = []
    for each in done:
        bad = next((run for run in each.runs if run["status"] != "ok"), None)
        error, kind = (each.error, each.error_kind) if bad is None else (bad["error"], bad["error_kind"])
        rows.append({
            "cell": each.cell.number, "seed": each.cell.seeds[0], "cpus": each.cell.cpus,
            **dict(each.cell.settings), "settings": each.cell.label,
            "status": "failed" if error or bad else "ok", "error": error, "error_kind": kind,
            "seconds": each.seconds, "n_runs": len(each.runs), "directory": each.cell.out,
        })  # fmt: skip
    return _from_rows(rows, schema)


def _from_rows(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> pl.DataFrame:
    """A table of exactly these columns; what a row lacks is null."""
    columns = [
        pl.Series(name, [row.get(name) for row in rows], kind, strict=False) for name, kind in schema.items()
    ]
    return pl.DataFrame(columns)
