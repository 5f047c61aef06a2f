# SPDX-License-Identifier: MIT
"""What a run on Linux tells where nothing may be recorded.

Each task has noted when it arrived, first ran and ended, and Linux has counted its
CPU time, its waiting and its switches (getrusage, schedstat), for which no user needs
a privilege. That gives most metrics; what needs the single events, such as wake-up
latency, is not known then.

Must stay true: impossible figures are found here as consistency.py finds impossible
records, and give no numbers.
Read next: runs/judge.py, which asks for this where there are no records.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .dictionary import DICTIONARY, RunMetrics, of_tasks

#: A task's own clock and that of the run are read one after the other; a process begins and ends.
TOLERANCE_NS = 1_000_000
#: By how much work may be longer or shorter than its program states, all tasks together.
LENGTH_MARGIN = 0.1
NONE = -1


def columns_of(tasks: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Task-level metrics of what the tasks noted.

    `tasks` are lines of `tasks.jsonl`, by number; those that did not arrive are left out. By name without
    `task_`, as `dictionary.RunMetrics.tasks`; times in nanoseconds, -1 where one did not come to pass.
    """
    tasks = [task for task in tasks if task["arrival_ns"] is not None]

    def column(name: str) -> np.ndarray:
        return np.array([NONE if task[name] is None else task[name] for task in tasks], np.int64)

    arrival, first_run, end = (column(f"{name}_ns") for name in ("arrival", "first_run", "end"))
    turnaround = np.where(end >= 0, end - arrival, NONE)
    wait = column("wait_ns")
    needed = turnaround - wait
    return {
        "task": column("task"),
        "arrival_ns": arrival,
        "first_run_ns": first_run,
        "end_ns": end,
        "turnaround_ns": turnaround,
        "response_ns": np.where(first_run >= 0, first_run - arrival, NONE),
        "wait_ns": wait,
        "run_ns": column("run_ns"),
        "slowdown": np.where((end >= 0) & (needed > 0), turnaround / np.maximum(needed, 1), np.nan),
        "switches_voluntary": column("voluntary_switches"),
        "switches_involuntary": column("involuntary_switches"),
    }


def check(
    columns: dict[str, np.ndarray], *, n_cpus: int, elapsed_ns: int, work_ns: np.ndarray, late_ns: int = 0
) -> str:
    """Look for what no machine can do.

    `"ok"`, or what is impossible. `work_ns`, shape (n_program_tasks,), is the CPU time that the program's
    tasks declare, -1 where that is not known; `late_ns`, how long after the end of the run tasks that had
    not ended may have gone on.
    """
    run, first_run, end = columns["run_ns"], columns["first_run_ns"], columns["end_ns"]
    has_ended = end >= 0
    declared = np.asarray(work_ns)[columns["task"] - 1]
    total = int(run.sum())
    if total > n_cpus * (elapsed_ns + late_ns) + len(run) * TOLERANCE_NS:
        return f"tasks used {total} ns of {n_cpus} CPUs in {elapsed_ns} ns"
    for text, is_wrong in (
        ("it ran before it arrived", (first_run >= 0) & (first_run < columns["arrival_ns"])),
        ("it ended before it ran", has_ended & (end < first_run)),
        ("it used more CPU time than passed", has_ended & (run > end - columns["arrival_ns"] + TOLERANCE_NS)),
        ("it ended before its work was done", has_ended & (declared >= 0) & (run + TOLERANCE_NS < declared)),
    ):
        if is_wrong.any():
            i = int(np.flatnonzero(is_wrong)[0])
            return f"task {columns['task'][i]}: {text} (ran {run[i]} ns, ended at {end[i]} ns)"
    return "ok"


def wrong_length(columns: dict[str, np.ndarray], *, work_ns: np.ndarray, has_calls: np.ndarray) -> str:
    """Compare the CPU time of tasks that only compute with what their programs state.

    Why the run is void: its work was not as long as stated, within a tenth; else empty. `work_ns`, shape
    (n_program_tasks,), is the CPU time that the program's tasks declare, -1 where that is not known; tasks
    of which `has_calls` is true have phases whose CPU time is the machine's, and are left out.

    Tasks that did not end are left out, and `TOLERANCE_NS` a task is allowed for what Linux
    does to begin and end it.

    >>> columns = {"task": np.array([1]), "end_ns": np.array([9]), "run_ns": np.array([131_000_000])}
    >>> wrong_length(columns, work_ns=[290_000_000], has_calls=[False])[:72]
    'work took 131.0 ms of CPU time where the workload says 290.0 ms (-54.8 %'
    """
    place = columns["task"] - 1
    declared = np.asarray(work_ns)[place]
    is_checked = (columns["end_ns"] >= 0) & (declared > 0) & ~np.asarray(has_calls)[place]
    stated_ns, took_ns = int(declared[is_checked].sum()), int(columns["run_ns"][is_checked].sum())
    if abs(took_ns - stated_ns) <= LENGTH_MARGIN * stated_ns + TOLERANCE_NS * int(is_checked.sum()):
        return ""
    return (
        f"work took {took_ns / 1e6:.1f} ms of CPU time where the workload says {stated_ns / 1e6:.1f} ms "
        f"({100 * (took_ns / stated_ns - 1):+.1f} %, {100 * LENGTH_MARGIN:.0f} % are allowed)"
    )


def tally_metrics(columns: dict[str, np.ndarray], *, n_cpus: int, elapsed_ns: int) -> RunMetrics:
    """Compute what can be known without records.

    Every run-level name of the dictionary, None where it is not known; no CPU-level ones.
    """
    values = of_tasks(columns, n_cpus=n_cpus, end_ns=elapsed_ns)
    run = {name: values.get(name) for name, metric in DICTIONARY.items() if metric.level == "run"}
    return RunMetrics(run=run, tasks=columns, cpus={})
