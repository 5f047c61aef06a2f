# SPDX-License-Identifier: MIT
"""What a recording, or a replay of one, did task by task.

A recorded program's tasks differ from each other, so that means over them say little.
A replay's page has what was recorded, which `schedlab replay` leaves beside the runs:

    OUT/WORKLOAD/recorded/recorded.json, tasks.parquet

Invariant: the times of a disturbed recording stand in no row beside those of a replay.
Read next: pieces.py, which puts the recorded run above the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..html import Table
from ..metrics.disturbance import DISTURBED_MAX, describe_disturbance
from ..stats.sentences import show_time

if TYPE_CHECKING:
    import polars as pl

    from .data import Section
#: Tasks of one table; of more, those with the most CPU time.
TASKS_MAX = 100
RECORDED = "recorded"
_COLUMNS = {
    "linux_pid": "PID", "run_ns": "CPU time", "wait_ns": "waited for a CPU", "wait_ns_max": "longest wait",
    "blocked_ns": "blocked", "turnaround_ns": "turnaround", "response_ns": "response",
    "switches_voluntary": "voluntary switches", "switches_involuntary": "involuntary switches",
    "migrations": "migrations",
}  # fmt: skip


def read_recorded(folder: Path) -> dict[str, Any] | None:
    """Read what `schedlab replay` left of the run that it replayed."""
    path = folder / RECORDED / "recorded.json"
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
        return {key: run[key] for key in ("host", "policy", "metrics")} | {
            "recording": run.get("recording") or {},
            "directory": str(path.parent),
        }
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: damaged ({error}); replay again to replace it") from error


def disturbed_text(run: dict[str, Any]) -> str | None:
    """What other processes had of a recording's CPUs; None where they had none."""
    found = (run.get("recording") or {}).get("disturbance")
    text = describe_disturbance(found) if found else None
    if text and is_disturbed(run):
        text += f"; over {DISTURBED_MAX:.0%}, so its times are not compared with a replay's"
    return text


def is_disturbed(run: dict[str, Any]) -> bool:
    """Whether other processes had too much for its times to be compared."""
    found = (run.get("recording") or {}).get("disturbance")
    return bool(found and found["share"] > DISTURBED_MAX)


def task_tables(section: Section) -> Iterator[tuple[str, Table]]:
    """Tables by task of a recording, or of a replay and what was recorded."""
    import polars as pl

    runs = section.at_shown_seed()
    if section.recorded is None and not any(run.get("recording") for run in runs.values()):
        return
    folders = [(policy, section.folder(run)) for policy, run in runs.items()]
    if section.recorded is not None and not is_disturbed(section.recorded):
        folders.insert(0, ("as recorded", Path(section.recorded["directory"])))
    for title, folder in folders:
        path = None if folder is None else folder / "tasks.parquet"
        if path is None or not path.is_file():
            section.notes.append(f"{title}: has no table of tasks; run it again to see them")
            continue
        yield title, _table(pl.read_parquet(path))


def _table(tasks: pl.DataFrame) -> Table:
    """A row per task."""
    chosen = tasks.sort("run_ns", descending=True).head(TASKS_MAX).sort("task")
    names = [name for name in _COLUMNS if name in tasks.columns]
    left = len(tasks) - len(chosen)
    caption = (
        f"The {TASKS_MAX} tasks with the most CPU time; {left:,} more are in tasks.parquet."
        if left
        else "Every task."
    )
    rows = [
        (str(row["name"]), [_cell(name, row[name]) for name in names]) for row in chosen.iter_rows(named=True)
    ]
    return Table("Tasks", caption, [("task", ""), *((_COLUMNS[name], "") for name in names)], rows)


def _cell(name: str, value: Any) -> str:
    """A time with its unit, a count, or `-`."""
    if value is None:
        return "-"
    return show_time(value) if name.endswith("_ns") or name == "wait_ns_max" else str(value)
