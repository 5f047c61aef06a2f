# SPDX-License-Identifier: MIT
"""What each cgroup of a workload had under each policy.

Read next: by_task.py; docs/formats.md, `[[group]]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..html import Table
from ..runs.folders import program_of_run
from ..stats.sentences import show_time

if TYPE_CHECKING:
    import polars as pl

    from ..program.file import Program
    from .data import Section
_CAPTION = (
    "With the groups in it. A task counts where it began, also after it has moved. What weights and limits mean is the "
    "policy's: by itself none of them holds."
)
_HEADS = ("weight", "limit", "CPUs", "tasks", "CPU time", "of its parent's")


def group_tables(section: Section) -> Iterator[tuple[str, Table]]:
    """A table by group for each policy, at the seed that is shown; none where the workload has no groups."""
    import polars as pl

    for policy, run in section.at_shown_seed().items():
        folder = section.folder(run)
        program = None if folder is None else program_of_run(folder)
        if folder is not None and program is not None and program.groups:
            yield policy, _table(program, pl.read_parquet(folder / "tasks.parquet"))


def _table(program: Program, tasks: pl.DataFrame) -> Table:
    """A row per group, a parent before its children."""
    groups = program.groups
    run_ns, n_tasks, paths = dict.fromkeys([0, *groups], 0), dict.fromkeys([0, *groups], 0), {0: ""}
    for pid, ns in tasks.select("task", "run_ns").iter_rows():
        number = int(program.group_of[pid - 1])
        while True:
            run_ns[number] += ns
            n_tasks[number] += 1
            if not number:
                break
            number = groups[number].parent
    rows = []
    for number, group in groups.items():
        paths[number] = f"{paths[group.parent]}/{group.name}"
        limit = (
            f"{show_time(1000 * group.limit_us[0])} of {show_time(1000 * group.limit_us[1])}"
            if group.limit_us
            else "-"
        )
        share = run_ns[number] / run_ns[group.parent] if run_ns[group.parent] else 0.0
        cells = [
            str(group.weight),
            limit,
            ",".join(map(str, group.cpus)) or "-",
            str(n_tasks[number]),
            show_time(run_ns[number]),
            f"{share:.1%}",
        ]
        rows.append((paths[number], cells))
    return Table("Groups", _CAPTION, [("group", ""), *((head, "") for head in _HEADS)], rows)
