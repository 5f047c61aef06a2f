# SPDX-License-Identifier: MIT
"""What a person sees of a run on Linux beside the metrics: the six columns of `time`.

Reports 2 and 4 have them of every test: wall, user and system time, CPU, involuntary
and voluntary switches, of all processes together.

Read next: tables.py; hosts/linux/host.py, where they come from.
"""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from ..hosts.linux.machine import warn_of_machine
from ..policy.linux_class import NUMBERS, parse_class
from ..stats.inference import CONFIDENCE, mean_interval
from ..stats.sentences import show_time

#: Name in a run's `usage`, and its heading.
COLUMNS = {
    "wall_ns": "wall", "user_ns": "user", "system_ns": "system", "cpu_percent": "CPU %",
    "switches_involuntary": "involuntary", "switches_voluntary": "voluntary",
}  # fmt: skip


def usage_rows(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The six columns of each workload under each class, as a report's table has them."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in runs:
        if run["status"] == "ok" and run.get("usage"):
            groups.setdefault((run["workload"], run["policy"], run["cpus"]), []).append(run["usage"])
    rows = []
    for (workload, policy, cpus), usages in groups.items():
        row = {"workload": workload, "policy": policy, "cpus": cpus, "n": len(usages)}
        for name in COLUMNS:
            interval = mean_interval([float(usage[name]) for usage in usages], minimum=0)
            is_known = len(usages) > 1
            row[name] = {
                "mean": interval.estimate,
                "low": interval.low if is_known else None,
                "high": interval.high if is_known else None,
            }
        rows.append(row)
    return rows


def usage_columns(runs: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Headings and cells of the six columns of one workload's runs."""
    rows = usage_rows(runs)
    if not rows:
        return []
    columns = [("policy", [escape(row["policy"]) for row in rows])]
    columns += [
        (heading, [_cell(name, row[name]["mean"]) for row in rows]) for name, heading in COLUMNS.items()
    ]
    columns.insert(2, (f"{CONFIDENCE:.0%} interval", [_interval(row["wall_ns"]) for row in rows]))
    return columns


def _interval(wall: dict[str, Any]) -> str:
    """Both ends of a time; of few runs it may reach below 0, where no time is."""
    return "-" if wall["low"] is None else f"{show_time(max(wall['low'], 0))} .. {show_time(wall['high'])}"


def show_figure(unit: str, value: float) -> str:
    """A figure with its unit, in few digits."""
    if unit == "ns":
        return show_time(value)
    if unit == "%":
        return f"{value:.1f}"
    if unit == "KiB":
        return f"{value / 1024:.1f} MiB"
    return f"{value:,.1f}" if value < 1000 and value != int(value) else f"{value:,.0f}"


def _cell(name: str, value: float) -> str:
    return show_figure("ns" if name.endswith("_ns") else "%" if name == "cpu_percent" else "1", value)


def machine_warnings(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What about this machine may mislead a reader of runs on Linux."""
    ours = [run for run in runs if run["host"] == "linux" and "linux" in run["environment"]]
    if not ours:
        return []
    classes = [
        parse_class(name)
        for name in dict.fromkeys(run["policy"] for run in ours)
        if name.partition(":")[0] in NUMBERS
    ]
    return warn_of_machine(ours[0]["environment"]["linux"], classes)
