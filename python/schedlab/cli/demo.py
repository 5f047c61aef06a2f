# SPDX-License-Identifier: MIT
"""What `schedlab demo` runs: the reports' schedulers on the reports' workloads.

Read next: runs/run.py.
"""

from __future__ import annotations

from pathlib import Path

from ..policy.find import list_policies
from ..runs.run import Plan

#: Shown first: tasks that compute, tasks that interact, tasks that write files.
MAIN_WORKLOAD = "mixed"
#: Folders of workloads that come from the reports.
REPORT_FOLDERS = ("report-1", "report-5")
#: The schedulers of the reports, in the order of the tables.
POLICIES = ("fifo", "rr", "priority", "lottery", "mlfq", "cfs", "credit")


def demo_plan(*, out: Path, n_seeds: int) -> Plan:
    """Plan the demo."""
    from ..paths import command_line
    from ..workload.find import list_workloads

    names = [info.name for info in list_workloads()]
    chosen = [name for name in names if name == MAIN_WORKLOAD]
    chosen += [name for name in names if name.partition("/")[0] in REPORT_FOLDERS]
    there = list_policies()
    return Plan(
        workloads=chosen,
        policies=[name for name in POLICIES if name in there],
        out=out,
        n_seeds=n_seeds,
        command_line=command_line(),
    )
