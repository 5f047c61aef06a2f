# SPDX-License-Identifier: MIT
"""Run what was recorded once more, under the class of Linux that an advised policy stands for, and hold it against the forecast.

        winner and knobs -> class of Linux -> RUNS recordings of the command -> medians -> inside their intervals?

Only where the policy is one of Linux's own classes, and a command was recorded: then it can be done at once, and nothing
has to be loaded into a kernel.

Read next: forecast.py, where the intervals come from.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from ..errors import HostError, UsageError
from ..policy.linux_class import SLICE_MAX_NS, SLICE_MIN_NS, parse_class
from .recording import record_command

TIMEOUT_NS = 600 * 10**9
#: Of real-time classes: any does, since all tasks have the same.
_PRIORITY = 10
_RR_SLICE = Path("/proc/sys/kernel/sched_rr_timeslice_ms")


def class_of(policy: str, knobs: Mapping[str, Any]) -> str | None:
    """The class of Linux that a policy with its knobs stands for, as `record --policy` takes it; None: there is none."""
    name = policy.partition(":")[0]
    if name == "rt_fifo":
        return f"SCHED_FIFO:{_PRIORITY}"
    if name == "rt_rr" and knobs.get("slice_ns") == _rr_slice_ns():
        return f"SCHED_RR:{_PRIORITY}"
    if name != "eevdf" or knobs.get("slice_source") or knobs.get("preempt") not in (1, 3):
        return None
    slice_ns = int(knobs["slice_ns"])
    if not SLICE_MIN_NS <= slice_ns <= SLICE_MAX_NS:
        return None
    return f"{'SCHED_OTHER' if knobs['preempt'] == 1 else 'SCHED_BATCH'}:{slice_ns / 1000:g}us"


def _rr_slice_ns() -> int:
    try:
        return int(_RR_SLICE.read_text()) * 10**6
    except (OSError, ValueError):
        return 100 * 10**6


def recorded_command(run: Mapping[str, Any]) -> tuple[list[str], tuple[int, ...]]:
    """Command and CPUs of a recording, to be run again; refused where none was recorded."""
    command = run.get("command") or {}
    if not command.get("argv"):
        raise UsageError(
            "--confirm: what was recorded is no command that can be run again; load the policy that is advised and record"
        )
    if not Path(command["folder"]).is_dir():
        raise UsageError(f"--confirm: {command['folder']}, where the command ran, is not there any more")
    return list(command["argv"]), tuple(command["cpus"])


def record_again(run: Mapping[str, Any], linux_class: str, out: Path) -> dict[str, Any]:
    """One real run of the recorded command; its metrics."""
    words, cpus = recorded_command(run)
    folder = run["command"]["folder"]
    if folder != os.getcwd():
        words = ["sh", "-c", f"cd {shlex.quote(folder)} && exec {shlex.join(words)}"]
    found = record_command(words, out, linux_class=parse_class(linux_class), cpus=cpus, timeout_ns=TIMEOUT_NS)
    if found["status"] != "ok":
        raise HostError(f"{linux_class}: the run to confirm failed: {found['error']}")
    shutil.rmtree(out)
    return dict(found["metrics"])


def confirm(
    linux_class: str,
    forecasts: Mapping[str, Mapping[str, float]],
    measure: Callable[[], dict[str, Any]],
    n_runs: int,
) -> dict[str, Any]:
    """Measure some times, and say of each metric's median whether it is inside its interval."""
    runs = [measure() for _ in range(n_runs)]
    found: dict[str, Any] = {"class": linux_class, "runs": n_runs, "metrics": {}}
    for name, expected in forecasts.items():
        values: Sequence[float] = [run[name] for run in runs if run.get(name) is not None]
        if not values:
            continue
        middle = median(values)
        found["metrics"][name] = {
            **expected, "measured": middle, "values": values, "is_inside": expected["low"] <= middle <= expected["high"],
        }  # fmt: skip
    return found
