# SPDX-License-Identifier: MIT
"""What a person sees of a recording.

Must stay true: what was lost, inferred or mended is said beside the numbers.
Read next: measure/recording.py.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from rich.markup import escape

from ..paths import own_command
from ..report.by_task import disturbed_text, is_disturbed
from ..stats.sentences import show_number
from ..units import format_duration
from .tables import COLUMNS, plain_table, say, show

#: What a reader asks first of a recording; the rest is in its tables.
_SHOWN = {
    "elapsed_ns": "elapsed", "busy_ns": "CPU time", "switches_voluntary": "voluntary switches",
    "switches_involuntary": "involuntary switches", "migrations": "migrations",
    "wait_ns_mean": "waited for a CPU, mean of tasks", "wakeup_ns_p50": "wake-up latency, median",
    "wakeup_ns_p99": "wake-up latency, p99",
}  # fmt: skip

#: Part of sleepers that may run without a wake-up before waits are not believed; 2 % are normal.
UNWOKEN_MAX = 0.1


def show_recording(run: dict[str, Any]) -> None:
    """Print a recording."""
    say(
        f"[bold]{escape(run['title'])}[/] under {escape(run['policy'])}: {len(run['tasks']):,} tasks, "
        f"{run['recording']['events']:,} events of the kernel",
        is_whole=True,
    )
    if run["metrics"]:
        table = plain_table()
        table.add_column("")
        table.add_column("", justify="right")
        for name, heading in _SHOWN.items():
            table.add_row(heading, show_number(name, run["metrics"][name]))
        table.show_header = False
        show(table)
    for line in _remarks(run):
        say(line)
    # A line to be copied into a shell, whatever the name.
    folder = shlex.quote(run["directory"])
    print(f"all of it: {run['directory']}; to go on:")
    lab = own_command()
    for words in (f"gantt {folder}", f"trace {folder}", f"replay {folder} --policy cfs,rr"):
        print(f"  {lab} {words}")


def _remarks(run: dict[str, Any]) -> list[str]:
    """What a reader must know about how it was recorded."""
    recording = run["recording"]
    found = [*_disturbed(run), *_clocks(run)]
    if recording["lost"]:
        found.append(
            f"{recording['lost']:,} events were lost, since the kernel's memory for them was full; "
            "take a larger --buffer"
        )
    if recording["inferred"]:
        found.append(
            f"starts inferred from CPU times: {recording['inferred']:,}, since this kernel does not tell of all, as "
            "on the way from an idle CPU"
        )
    if recording["repairs"]:
        found.append(f"states corrected where events contradict others: {recording['repairs']:,}")
    found += [f"missing: {line}" for line in recording.get("missing", ())]
    if recording["is_realtime"] is False:
        found.append(
            "the recorder had no real-time priority (CAP_SYS_NICE), so busy CPUs may keep it waiting"
        )
    command = run.get("command")
    if command and (command["exit_code"] or command["signal"]):
        how = f"signal {command['signal']}" if command["signal"] else f"exit code {command['exit_code']}"
        found.append(f"the command itself ended with {how}")
    return found


def _disturbed(run: dict[str, Any]) -> list[str]:
    """What others had of the CPUs, and whether that is too much for its times to be compared."""
    text = disturbed_text(run)
    remedy = ": record again on an idle machine" if is_disturbed(run) else ""
    return [f"disturbed: {text}{remedy}"] if text else []


def _clocks(run: dict[str, Any]) -> list[str]:
    """How far events contradict each other, where it is too much for waits to be believed."""
    recording = run.get("recording") or {}
    differ_ns, n_unwoken = recording.get("clocks_differ_ns", 0), recording.get("unwoken", 0)
    n_all = n_unwoken + recording.get("wakeups", 0)
    if not differ_ns and n_unwoken <= UNWOKEN_MAX * n_all:
        return []
    by = f" by {format_duration(differ_ns)} at least" if differ_ns else ""
    return [
        f"{n_unwoken:,} of {n_all:,} sleepers run again before they are woken: the clocks of CPUs differ{by}, or events are "
        "missing. Waits and latencies are wrong; record again with one clock (perf record -k CLOCK_MONOTONIC, "
        "trace-cmd record -C mono)"
    ]


def show_recorded(folder: Path) -> None:
    """Print what a run did when it was recorded, before what others make of it."""
    try:
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        metrics = run["metrics"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if not metrics:
        return
    for line in (*_disturbed(run), *_clocks(run)):
        say(escape(line))
    if is_disturbed(run):
        return
    words = [
        f"{heading.replace(chr(10), ' ')} {show_number(name, metrics[name])}"
        for name, heading in COLUMNS
        if metrics.get(name) is not None
    ]
    say(
        f"[bold]as recorded[/] on {escape(run['host'])} under {escape(run['policy'])}: "
        + escape(", ".join(words))
    )


def show_replayed(runs: list[dict[str, Any]]) -> None:
    """Print how much of what was recorded each replay has done, before what it predicts."""
    said = {}
    for run in runs:
        part = run.get("replay")
        if part:
            share = part["replayed_ns"] / max(part["recorded_ns"], 1)
            text = f"{share:.1%} of the recorded CPU time replayed, {part['tasks_started']} of {part['tasks']} tasks started"
            if part["tasks_short"]:
                text += f"; {part['tasks_short']} with less than 95 % of theirs, such as {', '.join(part['short'])}"
            said[run["policy"], text] = f"[bold]{escape(run['policy'])}[/]: {escape(text)}"
    for line in said.values():
        say(line)
