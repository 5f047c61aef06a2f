# SPDX-License-Identifier: MIT
"""Hold the simulator against Linux under published schedulers; `.venv/bin/python bench/upstream_guest.py`.

    upstream_guest.py FOLDER [--schedulers NAME...] [--write]
    upstream_guest.py FOLDER --loaders PROGRAMS [--schedulers NAME...] [--write]

FOLDER is a checkout of `sched-ext/scx`, or with `--loaders` also one of crates that cargo has unpacked; nothing of it is copied. Each scheduler is compiled for the
guest's kernel, loaded there with what its launch file has, and runs the workloads of `RUNS`, with the seeds of `SEEDS`.
The simulator runs the same, natively compiled. A mark is like those of docs/agreement.md: `=` all decisions
are the same, `ok` within the bounds; `~`: what is beyond them differs no more than the simulator does from itself, in 95 of 100
variations of what things cost (`NR_VARIATIONS`, halved to doubled). A number stands for a note below the
table. On several CPUs the guest's take turns, so there a run need only end well (`ran`). What the
guest did is kept by content, so that a command that was interrupted goes on where it was. With `--write` the rows
of schedulers that are not asked for stay as they are, and the table says which.

With `--loaders` each scheduler of which PROGRAMS, a folder, has the own program (`scx_simple` of a checkout, `scx_lavd-1.1.4` of a crate) runs in the guest under that, too: held
against what the guest does with its launch file, and against the simulator, on one CPU.

Read next: agreement_guest.py, which compares; upstream.py; docs/upstream.md.
"""

from __future__ import annotations

import argparse
import itertools
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np

from agreement_bounds import (
    P99_TICKS,
    RESPONSE,
    SHARE_POINTS,
    SWITCHES,
    Pair,
    copied,
    measure,
    over_seeds,
    variations,
    write_table,
)
from agreement_guest import COSTS, TIMEOUT_SECONDS, Run, above, in_guest, in_simulator, joined
from schedlab import paths
from schedlab.errors import SchedlabError
from schedlab.hosts.guest.host import GuestHost
from schedlab.hosts.guest.policies import TICK_NS
from schedlab.hosts.guest.verify import reason_of
from schedlab.hosts.host import Job
from schedlab.hosts.sim import SimHost
from schedlab.records.file import Kind, Records
from upstream import IN_C, PAGE, WITH_RUST, first_error, source_of, sources_of

#: Workload of tests/linux/agreement, and CPUs.
RUNS = (("mix", 1), ("web", 1), ("mix", 2))
#: Means of so many are compared: one decision that goes the other way makes another 99th percentile.
SEEDS = tuple(range(1, 9))
BOUNDS = (SHARE_POINTS, SWITCHES, RESPONSE, P99_TICKS)
#: A task leaves its group as it ends, as in Linux with autogroups; and the guest has no user half's thread.
LIKE_THE_GUEST = (("--exits", "regroup"), ("--user-thread", "off"))
#: Slices are multiples of the tick: one begins after the switch, so it ends one tick later. Those that a timer sets
#: last as many ticks, or one more, as ticks come sooner or later, and tasks of one program have used as much, but for a
#: microsecond: so the simulator draws that.
PUBLISHED_COSTS = COSTS | {"switch_ns": 2_000, "timer_ns": 2_400, "jitter_ns": 1_000}
TABLE, LOADERS_TABLE = "guest table", "loaders table"
#: What a scheduler's own program is held against: workloads of this folder, and others.
LOADER_WORKLOADS = ("mixed", "classics/requests")
#: Of how far the simulator is from itself.
QUANTILE = 0.95
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


def difference(runs: list[Run], one: list, other: list) -> Pair:
    """How far two hosts are from each other, in means over seeds, of which each has one run and two records."""
    pairs = []
    for run, *both in zip(runs, one, other, strict=True):
        pairs.append(Pair(run.workload, run.policy))
        measure(pairs[-1], run.program, both, TICK_NS)
    return over_seeds(pairs, TICK_NS)


def used_ns(records: Records) -> np.ndarray:
    """CPU time of each task."""
    stops = records.events[records.events["kind"] == Kind.STOP]
    return np.bincount(stops["task"], weights=stops["arg"])[1:]


class Shifted(GuestHost):
    """The guest, whose programs begin elsewhere between two ticks with each seed.

    Where that is, no user chooses, and in a guest that is built otherwise it is another place: equal tasks
    then go in another order, so what is compared are means over several.
    """

    def lead_ms(self, job: Job) -> int:
        """A millisecond more for each seed; a tick has four."""
        return super().lead_ms(job) + job.seed


def numbers_of(pair: Pair) -> np.ndarray:
    """What has a bound, in the order of `BOUNDS`, without a sign: points, relative, relative, ticks."""
    return np.abs([pair.share_points, pair.switches, pair.response, pair.p99_ticks])


def agreement(workload: str, source: Path, program: Path | None = None) -> tuple[str, str]:
    """Compare guest and simulator on one CPU; returns what `try_run` does."""
    runs = [Run(workload, str(source), seed, program_of=str(program or "")) for seed in SEEDS]
    real = [in_guest(run, Shifted()) for run in runs]
    like_the_guest = LIKE_THE_GUEST[:1] if program else LIKE_THE_GUEST
    with closing(SimHost().session(timeout_seconds=TIMEOUT_SECONDS)) as session:

        def simulated(costs: dict[str, int], seed_more: int = 0) -> list[Records]:
            return [
                joined(
                    in_simulator(
                        run,
                        session,
                        seed_more=seed_more,
                        costs=costs,
                        options=[*like_the_guest, *above(records)],
                    )
                )
                for run, records in zip(runs, real, strict=True)
            ]

        # What a task's end costs beyond that is the scheduler's own `exit_task`: 0.4 ms with an arena.
        pairs = zip(real, simulated(PUBLISHED_COSTS), strict=True)
        more_ns = np.median(np.concatenate([used_ns(one) - used_ns(other) for one, other in pairs]))
        costs = PUBLISHED_COSTS | {"exit_ns": max(PUBLISHED_COSTS["exit_ns"] + int(more_ns), 0)}
        base = simulated(costs)
        pair = difference(runs, real, base)
        if not pair.beyond:
            return "=" if pair.are_equal else "ok", ""
        itself = np.quantile(
            [
                numbers_of(difference(runs, simulated(varied, len(runs) * seed), base))
                for seed, varied in variations(costs, 0)
            ],
            QUANTILE,
            axis=0,
        )
    if (numbers_of(pair) <= np.maximum(BOUNDS, itself)).all():
        return "~", ""
    share, switches, response, p99 = itself
    return "", (
        f"{', '.join(pair.beyond)}; the simulator from itself: share {share:.1f} points, switches {switches:.0%}, "
        f"response {response:.0%}, p99 {p99:.1f} ticks"
    )


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
        return agreement(workload, source)
    except (RuntimeError, SchedlabError) as error:
        return "", reason(str(error))


def against_launch_file(workload: str, source: Path, program: Path) -> tuple[str, str]:
    """Compare, in the guest, a scheduler's own program with its launch file; returns what `try_run` does."""
    runs = [Run(workload, str(source), seed) for seed in SEEDS]
    own = [in_guest(replace(run, program_of=str(program)), Shifted()) for run in runs]
    pair = difference(runs, own, [in_guest(run, Shifted()) for run in runs])
    return ("=" if pair.are_equal else "ok", "") if not pair.beyond else ("", ", ".join(pair.beyond))


def try_loader(source: Path, program: Path) -> list[tuple[str, str]]:
    """All cells of a scheduler's own program."""
    cells = []
    for compare, workload in itertools.product((against_launch_file, agreement), LOADER_WORKLOADS):
        try:
            cells.append(compare(workload, source, program))
        except (RuntimeError, SchedlabError) as error:
            cells.append(("", reason(str(error))))
    return cells


def loader_rows(asked: argparse.Namespace) -> None:
    """Print the table of schedulers' own programs, or write it."""
    found = sources_of(asked.folder, asked.schedulers)
    programs = {name: asked.loaders / name.strip("`").replace("` ", "-") for name in found}
    rows = {
        name: (source, programs[name])
        for name, source in found.items()
        if re.split(r"\W", name)[1].removeprefix("scx_") in asked.schedulers
    }
    head = [
        f"{against}, {workload}" for against in ("launch file", "simulator") for workload in LOADER_WORKLOADS
    ]
    notes: dict[str, int] = {}
    kept = rows_of(PAGE.read_text(encoding="utf-8"), LOADERS_TABLE) if asked.write else {}
    todo = {name: row for name, row in rows.items() if row[0] and row[1].is_file()}
    done = {}
    for name, (source, program) in todo.items():
        done[name] = try_loader(source, program)
        print(name, done[name], flush=True)
    lines = [f"| scheduler | {' | '.join(head)} |", "| --- " * (len(head) + 1) + "|"]
    for name, cells in sorted({**kept, **done}.items()):
        shown = [mark or f"({notes.setdefault(why, len(notes) + 1)})" for mark, why in cells]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    text = "\n".join([f"Linux 7.2, one CPU, means over {len(SEEDS)} seeds.", "", *lines, "", *listed(notes)])
    if asked.write:
        write_table(LOADERS_TABLE, text, PAGE)
    else:
        print(text)


def listed(notes: dict[str, int]) -> list[str]:
    """Notes by their numbers."""
    return [f"{number}. {why}" for why, number in notes.items()]


def rows_of(page: str, name: str = "guest table") -> dict[str, list[tuple[str, str]]]:
    """Read a table of a page.

    Parameters
    ----------
    page : str
        All of it.
    name : str
        Of the table.

    Returns
    -------
    dict of str to list of tuple
        By scheduler, for each run a mark and a reason, one of them empty.

    Examples
    --------
    >>> rows_of("<!-- guest table -->\\n| `scx_a` | ok | (2) |\\n\\n2. why\\n<!-- end of guest table -->")
    {'`scx_a`': [('ok', ''), ('', 'why')]}
    """
    table = page.partition(f"<!-- {name} -->")[2].partition(f"<!-- end of {name} -->")[0]
    notes = dict(re.findall(r"^(\d+)\. (.*)$", table, re.MULTILINE))
    rows = re.findall(r"^\| (`scx_\w+`[^|]*?) \| (.*) \|$", table, re.MULTILINE)
    return {
        scheduler: [("", notes[cell[1:-1]]) if cell[0] == "(" else (cell, "") for cell in row.split(" | ")]
        for scheduler, row in rows
    }


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--schedulers", nargs="+", default=[*IN_C, *WITH_RUST])
    parser.add_argument("--loaders", type=Path, metavar="PROGRAMS")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="schedlab-upstream-") as folder,
        mock.patch.object(paths, "simulator", copied(paths.simulator(), folder)),
    ):
        if asked.loaders:
            loader_rows(asked)
        else:
            guest_rows(asked)


def guest_rows(asked: argparse.Namespace) -> None:
    """Print the table of schedulers with their launch files, or write it."""
    lines = [
        f"| scheduler | {' | '.join(f'{workload}, {cpus} CPU' for workload, cpus in RUNS)} |",
        "| --- " * (len(RUNS) + 1) + "|",
    ]
    notes: dict[str, int] = {}
    kept = rows_of(PAGE.read_text(encoding="utf-8")) if asked.write else {}
    kept = {name.strip("`").removeprefix("scx_"): row for name, row in kept.items()}
    kept = {name: row for name, row in kept.items() if name not in asked.schedulers}
    with ThreadPoolExecutor(2) as pool:
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
            *listed(notes),
        ]
    )
    if asked.write:
        write_table(TABLE, text, PAGE)
    else:
        print(text)


if __name__ == "__main__":
    main()
