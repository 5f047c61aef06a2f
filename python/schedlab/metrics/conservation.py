# SPDX-License-Identifier: MIT
"""Compare the CPU time of tasks with what else is known of it: a clock, or a recording.

On threads of a process the tasks' CPU time is computed, from a counter and from what
other processes were found to have had. The kernel's own clock of these threads says
what it must add up to.

A replay that gives a task more than it had invents CPU time, which consistency.py
refuses; one that ends before its tasks have had what was recorded has not done
the recorded work, and predicts nothing about it.

Invariant: the program of a replay declares of each task what was recorded.
Read next: measure/replay.py, which makes that program; runs/judge.py, the caller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .speed import work_received_ns
from .timeline import Timeline

#: How much of the recorded CPU time may not fit into the recorded time under another policy.
SHORTFALL_MAX = 0.05
#: A program asks for so much more for a task that was runnable when its recording ended.
STILL_RUNNABLE_NS = 1
_NAMES_SHOWN = 3
#: How far the tasks' CPU time may be from the kernel's clock: this part of it, and so much for each CPU.
CLOCK_ERROR_MAX, CLOCK_ERROR_NS = 0.05, 2_000_000


def replayed_part(timeline: Timeline, work_ns: np.ndarray, names: np.ndarray) -> dict[str, Any]:
    """Add up what each task had of the CPU time that was recorded of it.

    `work_ns`, shape (n_program_tasks,), is the CPU time that was recorded of each task, in nanoseconds, and
    up to `STILL_RUNNABLE_NS` more. Returns `recorded_ns` and `replayed_ns`, CPU time of all tasks; `tasks`,
    how many ran when they were recorded; `tasks_started`, how many of these run in the replay;
    `tasks_short`, how many had less than 95 % of their CPU time, the names of the first of these in
    `short`.
    """
    tasks = timeline.by_task
    received = np.zeros(len(work_ns), np.int64)
    known = (tasks.keys >= 1) & (tasks.keys <= len(work_ns))
    received[tasks.keys[known].astype(np.int64) - 1] = work_received_ns(timeline)[0][known]
    has_run = work_ns > STILL_RUNNABLE_NS
    # What it asks for beyond its recorded time is not recorded time.
    recorded = np.where(has_run, work_ns, 0)
    received = np.minimum(received, recorded)
    is_short = has_run & (recorded - received > SHORTFALL_MAX * recorded + STILL_RUNNABLE_NS)
    order = np.argsort((received - recorded)[is_short], kind="stable")[:_NAMES_SHOWN]
    return {
        "recorded_ns": int(recorded.sum()),
        "replayed_ns": int(received.sum()),
        "tasks": int(has_run.sum()),
        "tasks_started": int((has_run & (received > 0)).sum()),
        "tasks_short": int(is_short.sum()),
        "short": [str(name) for name in np.asarray(names)[is_short][order]],
    }


def check_replay(part: dict[str, Any]) -> str:
    """Decide whether a replay has done what was recorded.

    `"ok"`, or what is missing in words; `part` is what `replayed_part` returned.

    >>> check_replay({"recorded_ns": 100, "replayed_ns": 96, "tasks": 2, "tasks_started": 2})
    'ok'
    """
    missing_ns = part["recorded_ns"] - part["replayed_ns"]
    if missing_ns <= SHORTFALL_MAX * part["recorded_ns"]:
        return "ok"
    return (
        f"of {part['recorded_ns']} ns of CPU time that were recorded, {missing_ns} ns were not replayed: under this policy "
        f"the recorded work does not fit into the recorded time ({part['tasks'] - part['tasks_started']} of {part['tasks']} "
        f"tasks never start; {part['tasks_short']} have less than {1 - SHORTFALL_MAX:.0%} of their CPU time, the largest "
        f"loss is of {', '.join(part['short'])}); it predicts nothing"
    )


def check_clock(timeline: Timeline, clock: dict[str, Any]) -> str:
    """Hold the CPU time of all tasks against the clock of the threads that they ran on.

    `"ok"`, or what does not add up, in words; `clock` is that of `hosts.host.Outcome`, in nanoseconds.
    """
    spans = timeline.spans
    ran_ns = int(spans.ran_ns[spans.is_run].sum())
    most_ns = clock["clock_ns"]
    least_ns = most_ns - clock["idle_clock_ns"] - clock["switch_clock_ns"]
    slack_ns = CLOCK_ERROR_MAX * most_ns + CLOCK_ERROR_NS * timeline.records.n_cpus
    if least_ns - slack_ns <= ran_ns <= most_ns + slack_ns:
        return "ok"
    return (
        f"at {timeline.records.end_ns} ns (the end): tasks are said to have had {ran_ns} ns of CPU time, but their kernel "
        f"threads had {most_ns} ns by the kernel's clock, {most_ns - least_ns} ns of it without a task"
    )


def taken_from(clock: dict[str, Any]) -> str | None:
    """Say when other processes had more of a run's CPUs than the run itself.

    Why the run is void, or None; `clock` is that of `hosts.host.Outcome`, in nanoseconds.

    >>> taken_from({"taken_ns": 10, "clock_ns": 11})
    >>> taken_from({"taken_ns": 3_000_000, "clock_ns": 1_000_000})
    'void: other processes had 3.0 ms of the CPUs of this run, which had 1.0 ms itself, so its times are theirs; repeat it on an idle machine'
    """
    if clock["taken_ns"] <= clock["clock_ns"]:
        return None
    return (
        f"void: other processes had {clock['taken_ns'] / 1e6:.1f} ms of the CPUs of this run, which had "
        f"{clock['clock_ns'] / 1e6:.1f} ms itself, so its times are theirs; repeat it on an idle machine"
    )
