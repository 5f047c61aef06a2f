# SPDX-License-Identifier: MIT
"""Hold the simulator against Linux under published schedulers; `.venv/bin/python bench/upstream_guest.py`.

    upstream_guest.py FOLDER [--schedulers NAME...] [--write]

FOLDER is a checkout of `sched-ext/scx`; nothing of it is copied. Each scheduler is compiled for the
guest's kernel, loaded there with what its launch file has, and runs the workloads of `RUNS`, with the seeds of `SEEDS`.
The simulator runs the same, natively compiled. A mark is that of docs/agreement.md: `=` all decisions
are the same, `ok` within the bounds, `~` microseconds decide; a number stands for a note below the
table. On several CPUs the guest's take turns, so there a run need only end well (`ran`). What the
guest did is kept by content, so that a command that was interrupted goes on where it was. With `--write` the rows
of schedulers that are not asked for stay as they are, and the table says which.

Read next: agreement_guest.py, which compares; upstream.py; docs/upstream.md.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

from agreement_bounds import copied, write_table
from agreement_guest import COSTS, Run, compare, in_guest
from schedlab import paths
from schedlab.errors import SchedlabError
from schedlab.hosts.guest.verify import reason_of
from upstream import IN_C, PAGE, WITH_RUST, first_error, source_of

#: Workload of tests/linux/agreement, and CPUs.
RUNS = (("mix", 1), ("web", 1), ("mix", 2))
#: Means of so many are compared: one decision that goes the other way makes another 99th percentile.
SEEDS = (1, 2, 3, 4)
#: Slices are multiples of the tick: one begins after the switch, so it ends one tick later.
PUBLISHED_COSTS = COSTS | {"switch_ns": 2_000}
TABLE = "guest table"
NO_SOURCE = "its BPF half is made by a crate that is not in its folder"


def reason(text: str) -> str:
    """Say in one line why a run did not end well.

    Parameters
    ----------
    text : str
        What the guest said; a verifier's log is long.

    Returns
    -------
    str
        The line of the source and the verifier's words, or the first error.
    """
    if "processed " in text:
        text = " / ".join(reason_of(text).splitlines()[:2])
    # Folders are this machine's.
    return re.sub(r"/[^\s:,]*/", "", first_error(text))[:200]


def try_run(source: Path, workload: str, cpus: int) -> tuple[str, str]:
    """Run a scheduler in the guest, and on one CPU in the simulator, too.

    Parameters
    ----------
    source : pathlib.Path
        Its file.
    workload : str
        Its name.
    cpus : int
        How many.

    Returns
    -------
    tuple of str
        A mark, empty where there is a reason why not; the reason.
    """
    try:
        if cpus > 1:
            in_guest(Run(workload, str(source), 1, cpus))
            return "ran", ""
        cell = compare(workload, str(source), SEEDS, costs=PUBLISHED_COSTS)
    except (RuntimeError, SchedlabError) as error:
        return "", reason(str(error))
    pair = cell.costly
    if cell.mark or pair.error:
        return cell.mark, reason(pair.error) if pair.error else ""
    real, simulated = pair.numbers["switches"]
    return "", f"{', '.join(pair.beyond)} (kernel and simulator: {real:.0f} and {simulated:.0f} switches)"


def rows_of(page: str) -> dict[str, list[tuple[str, str]]]:
    """Read the table of a page.

    Parameters
    ----------
    page : str
        All of it.

    Returns
    -------
    dict of str to list of tuple
        By scheduler, for each run a mark and a reason, one of them empty.

    Examples
    --------
    >>> rows_of("<!-- guest table -->\\n| `scx_a` | ok | (2) |\\n\\n2. why\\n<!-- end of guest table -->")
    {'a': [('ok', ''), ('', 'why')]}
    """
    table = page.partition(f"<!-- {TABLE} -->")[2].partition(f"<!-- end of {TABLE} -->")[0]
    notes = dict(re.findall(r"^(\d+)\. (.*)$", table, re.MULTILINE))
    rows = re.findall(r"^\| `scx_(\w+)` \| (.*) \|$", table, re.MULTILINE)
    return {
        name: [("", notes[cell[1:-1]]) if cell[0] == "(" else (cell, "") for cell in row.split(" | ")]
        for name, row in rows
    }


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--schedulers", nargs="+", default=[*IN_C, *WITH_RUST])
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    lines = [
        f"| scheduler | {' | '.join(f'{workload}, {cpus} CPU' for workload, cpus in RUNS)} |",
        "| --- " * (len(RUNS) + 1) + "|",
    ]
    notes: dict[str, int] = {}
    kept = rows_of(PAGE.read_text(encoding="utf-8")) if asked.write else {}
    kept = {name: row for name, row in kept.items() if name not in asked.schedulers}
    with (
        tempfile.TemporaryDirectory(prefix="schedlab-upstream-") as folder,
        mock.patch.object(paths, "simulator", copied(paths.simulator(), folder)),
        ThreadPoolExecutor(2) as pool,
    ):
        for name in (name for name in (*IN_C, *WITH_RUST) if name in (*kept, *asked.schedulers)):
            source = source_of(asked.folder, name)
            if name in kept:
                tried = kept[name]
            elif source:
                tried = pool.map(lambda run, source=source: try_run(source, *run), RUNS)
            else:
                tried = [("", NO_SOURCE)] * len(RUNS)
            cells = [mark or f"({notes.setdefault(why, len(notes) + 1)})" for mark, why in tried]
            lines.append(f"| `scx_{name}` | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    text = "\n".join(
        [
            f"Linux 7.2, means over {len(SEEDS)} seeds{'; before: ' + ', '.join(kept) if kept else ''}.",
            "",
            *lines,
            "",
            *(f"{number}. {why}" for why, number in notes.items()),
        ]
    )
    if asked.write:
        write_table(TABLE, text, PAGE)
    else:
        print(text)


if __name__ == "__main__":
    main()
