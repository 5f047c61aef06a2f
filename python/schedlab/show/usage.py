# SPDX-License-Identifier: MIT
"""What a person sees of a run on Linux beside the metrics: the six columns of `time`.

Reports 2 and 4 have them of every test: wall, user and system time, CPU, involuntary
and voluntary switches, of all processes together.

Read next: tables.py; hosts/linux.py, where they come from.
"""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from ..hosts.linux_machine import doubt_machine
from ..policy.linux_class import NUMBERS, parse_class
from ..stats.inference import CONFIDENCE, mean_interval
from ..stats.sentences import show_time

#: Name in a run's `usage`, and its heading.
COLUMNS = {
    "wall_ns": "wall", "user_ns": "user", "system_ns": "system", "cpu_percent": "CPU %",
    "switches_involuntary": "involuntary", "switches_voluntary": "voluntary",
}  # fmt: skip


def usage_rows(runs: list[dict]) -> list[dict]:
    """The six columns of each workload under each class, as a report's table has them.

    Parameters
    ----------
    runs : list of dict
        As `schedlab run --json` lists them; those that failed, and those of other
        hosts than Linux, are left out.

    Returns
    -------
    list of dict
        In the order of the runs: `workload`, `policy`, `cpus`, `n`, and by name of
        `COLUMNS` its `mean`, `low` and `high` (None of one run); times in nanoseconds.
    """
    groups: dict[tuple, list[dict]] = {}
    for run in runs:
        if run["status"] == "ok" and run.get("usage"):
            groups.setdefault((run["workload"], run["policy"], run["cpus"]), []).append(run["usage"])
    rows = []
    for (workload, policy, cpus), usages in groups.items():
        row = {"workload": workload, "policy": policy, "cpus": cpus, "n": len(usages)}
        for name in COLUMNS:
            interval = mean_interval([float(usage[name]) for usage in usages], least=0)
            is_known = len(usages) > 1
            row[name] = {"mean": interval.estimate, "low": interval.low if is_known else None,
                         "high": interval.high if is_known else None}  # fmt: skip
        rows.append(row)
    return rows


def usage_table(table: Table, runs: list[dict]) -> Table | None:
    """Fill a table with the six columns of one workload's runs.

    Parameters
    ----------
    table : rich.table.Table
        Without columns.
    runs : list of dict
        Of one workload.

    Returns
    -------
    rich.table.Table or None
        The same; None where no run has such figures.
    """
    rows = usage_rows(runs)
    if not rows:
        return None
    table.add_column("policy", no_wrap=True)
    for name, heading in COLUMNS.items():
        table.add_column(heading, justify="right", no_wrap=True)
        if name == "wall_ns":
            table.add_column(f"{CONFIDENCE:.0%} interval", justify="right", no_wrap=True)
    for row in rows:
        cells = [_cell(name, row[name]["mean"]) for name in COLUMNS]
        wall = row["wall_ns"]
        # Of few runs an interval may reach below 0, where no time is.
        interval = "-" if wall["low"] is None else f"{show_time(max(wall['low'], 0))} .. {show_time(wall['high'])}"
        table.add_row(escape(row["policy"]), cells[0], interval, *cells[1:])
    return table


def _cell(name: str, value: float) -> str:
    """A figure in few digits."""
    if name.endswith("_ns"):
        return show_time(value)
    if name == "cpu_percent":
        return f"{value:.1f}"
    return f"{value:,.1f}" if value < 1000 and value != int(value) else f"{value:,.0f}"


def machine_doubts(runs: list[dict]) -> list[dict]:
    """What about this machine may mislead a reader of runs on Linux.

    Parameters
    ----------
    runs : list of dict
        As `schedlab run --json` lists them; those of other hosts say nothing.

    Returns
    -------
    list of dict
        `kind`, `text` and `hint` of each doubt, once for all runs.
    """
    ours = [run for run in runs if run["host"] == "linux" and "linux" in run["environment"]]
    if not ours:
        return []
    classes = [parse_class(name) for name in dict.fromkeys(run["policy"] for run in ours) if name.partition(":")[0] in NUMBERS]
    return doubt_machine(ours[0]["environment"]["linux"], classes)
