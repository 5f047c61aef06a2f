# SPDX-License-Identifier: MIT
"""What it means that two hosts agree; agreement.py and its neighbours use it.

A pair of runs of one program is compared with the bounds of the project's design.
Shares are those of windows: what a task has had when it ends is fixed by its program,
whatever the policy does, and what its class has had in a given tenth of a second is not.
Where a pair is beyond the bounds, the simulator is asked again, with costs and seeds that
are somewhat different (`variations`): nobody knows a host's costs exactly, and if one
of these runs is within the bounds, microseconds decide about this workload under
this policy. That is the mark `~` in the tables of docs/agreement.md.

Read next: docs/agreement.md.
"""

from __future__ import annotations

import itertools
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from documents import write_between
from schedlab.metrics.dictionary import compute_metrics
from schedlab.metrics.timeline import Timeline
from schedlab.records.file import Kind, Stop

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "agreement.md"
#: The bounds of the project's design, fixed before the first run.
SHARE_POINTS, SWITCHES, RESPONSE, P99_TICKS = 2.0, 0.10, 0.15, 1.0
#: Length of the windows of which shares are compared: 2 points of one are two ticks.
#: One turn that falls into the next window is no other schedule, so their mean counts.
WINDOW_TICKS = 100
NR_VARIATIONS = 40
#: Each cost is multiplied or divided by up to this.
VARIATION = 2.0


@dataclass
class Pair:
    """A run in another host, and one in the simulator."""

    #: `workload`, `policy`: Which.
    workload: str
    policy: str
    error: str | None = None  #: What kept them from being compared.
    are_equal: bool = False  #: Whether both hosts ran the same tasks in the same order, for the same reasons.
    share_points: float = 0.0  #: By how much the shares of classes in a window differ; see `share_points`.
    #: `switches`, `response`: Relative difference of the number of switches and of the mean response time; the
    #: host's less the simulator's, by the simulator's.
    switches: float = 0.0
    response: float = 0.0
    p99_ticks: float = 0.0  #: Larger difference of the two 99th percentiles (response, wake-up) in ticks.
    numbers: dict = field(default_factory=dict)  #: Both hosts' values behind them.
    shares: tuple = ()  #: Of both hosts, from 0 to 1.

    @property
    def beyond(self) -> list[str]:
        """Bounds that it exceeds, in words."""
        found = []
        if self.share_points > SHARE_POINTS:
            found.append(f"share {self.share_points:.1f} points")
        if abs(self.switches) > SWITCHES:
            found.append(f"switches {self.switches:+.0%}")
        if abs(self.response) > RESPONSE:
            found.append(f"response {self.response:+.0%}")
        if self.p99_ticks > P99_TICKS:
            found.append(f"p99 {self.p99_ticks:.1f} ticks")
        return found


@dataclass
class Cell:
    """One workload under one policy: a place in a table."""

    costly: Pair  #: With the simulator that knows what things cost in the kernel.
    free: Pair  #: With the simulator in which nothing costs any time.
    n_cpus: int = 1  #: On how many CPUs.
    has_like: bool = False  #: If `costly` is beyond the bounds: whether one of NR_VARIATIONS is not.

    @property
    def mark(self) -> str:
        """What stands in the table; empty: it has to be explained."""
        if self.costly.error:
            return ""
        if not self.costly.beyond:
            return "=" if self.costly.are_equal else "ok"
        return "~" if self.has_like else ""


def decisions(records) -> list[tuple]:
    """What the scheduler decided: `(kind, task, why)` of each RUN and STOP.

    CPUs are alike, so where does not count.
    """
    events = records.events
    chosen = events[np.isin(events["kind"], (Kind.RUN, Kind.STOP))]
    why = np.where(chosen["kind"] == Kind.STOP, chosen["flags"], 0)
    return list(zip(chosen["kind"].tolist(), chosen["task"].tolist(), why.tolist(), strict=True))


def first_difference(both, program, context: int = 3) -> list[str]:
    """Show where two runs of a program part: how many decisions are the same, and if not all, lines for either host.

    `>` marks the first decision that differs; `context` events stand before and after it.
    """
    names = {pid: program.string(int(row["name"])) for pid, row in enumerate(program.task_rows, 1)}
    chosen = [decisions(records) for records in both]
    n_same = next((i for i, pair in enumerate(itertools.zip_longest(*chosen)) if pair[0] != pair[1]), None)
    if n_same is None:
        return [f"all {len(chosen[0])} decisions are the same"]
    lines = [f"{n_same} decisions are the same, of {len(chosen[0])} and {len(chosen[1])}"]
    for host, records in zip(("host", "simulator"), both, strict=True):
        events = records.events
        rows = np.flatnonzero(np.isin(events["kind"], (Kind.RUN, Kind.STOP)))
        here = int(rows[n_same]) if n_same < len(rows) else len(events) - 1
        lines.append(f"  {host}:")
        lines += [
            f"  {'>' if i == here else ' '} {_told(events[i], names)}"
            for i in range(max(here - context, 0), min(here + context + 1, len(events)))
        ]
    return lines


def _told(event, names: dict[int, str]) -> str:
    """Say in a line what an event is."""
    kind, pid = Kind(int(event["kind"])), int(event["task"])
    why = (
        f" {Stop(int(event['flags'])).name.lower()} after {int(event['arg']) / 1e6:.6f} ms"
        if kind == Kind.STOP
        else ""
    )
    by = f" by {names.get(int(event['arg']), 'no task')}" if kind in (Kind.WAKE, Kind.ARRIVE) else ""
    return (
        f"{int(event['t_ns']) / 1e6:12.6f} ms  CPU {int(event['cpu'])}  {kind.name.lower():7} "
        f"{names.get(pid, '-')}[{pid}]{why}{by}"
    )


def variations(costs: dict[str, int], seed: int) -> Iterator[tuple[int, dict[str, int]]]:
    """What the simulator is asked again with: what nobody knows exactly.

    Another seed, and each cost halved to doubled; `NR_VARIATIONS` times, the same ones for the same arguments.
    """
    draw = random.Random(seed)
    for i in range(NR_VARIATIONS):
        varied = {name: int(ns * VARIATION ** draw.uniform(-1, 1)) for name, ns in costs.items()}
        yield seed + 1 + i, varied


def measure(pair: Pair, program, both, tick_ns: int) -> None:
    """Fill in how two runs differ, that of the host and that of the simulator."""
    weight = program.tasks["weight"]
    timelines = [Timeline(records) for records in both]
    real, simulated = (compute_metrics(timeline, weight=weight).run for timeline in timelines)
    p99 = [abs((real[name] or 0) - (simulated[name] or 0)) for name in ("response_ns_p99", "wakeup_ns_p99")]
    pair.are_equal = decisions(both[0]) == decisions(both[1])
    pair.shares = tuple(window_shares(timeline, program, WINDOW_TICKS * tick_ns) for timeline in timelines)
    pair.share_points = share_points(*pair.shares)
    pair.switches = _relative(real["switches"], simulated["switches"])
    pair.response = _relative(real["response_ns_mean"], simulated["response_ns_mean"], minimum=tick_ns / 100)
    pair.p99_ticks = max(p99) / tick_ns
    for name in ("switches", "response_ns_mean", "response_ns_p99", "wakeup_ns_p99"):
        pair.numbers[name] = (real[name], simulated[name])


def window_shares(timeline: Timeline, program, window_ns: int) -> np.ndarray:
    """What each class of tasks had of the CPUs in each window of a run, float of shape (n_windows, n_classes).

    CPU time by what all CPUs together have in a window; the last one is as long, too. Where all
    tasks are of one class, each counts as one.
    """
    classes = np.asarray(program.tasks["class_idx"])
    if len(np.unique(classes)) == 1:
        classes = np.arange(len(classes))
    spans, records = timeline.spans, timeline.records
    edges = np.arange(0, records.end_ns + window_ns, window_ns)
    used_ns = np.zeros((len(edges), int(classes.max()) + 1))
    for task in np.unique(spans.task[spans.is_run]):
        mine = spans.is_run & (spans.task == task)
        begin, end = spans.begin_ns[mine, None], spans.end_ns[mine, None]
        used_ns[:, classes[task - 1]] += (np.minimum(end, edges) - np.minimum(begin, edges)).sum(axis=0)
    return np.diff(used_ns, axis=0) / (window_ns * records.n_cpus)


def share_points(real: np.ndarray, simulated: np.ndarray) -> float:
    """Mean over windows of the largest difference of a share, in percentage points, 0 to 100.

    Both have shape (n_windows, n_classes); in windows that one of them does not have, nothing ran there.
    """
    n = max(len(real), len(simulated))
    first, second = (np.pad(shares, ((0, n - len(shares)), (0, 0))) for shares in (real, simulated))
    return 100 * float(np.abs(first - second).max(axis=1).mean())


def over_seeds(pairs: list[Pair], tick_ns: int) -> Pair:
    """Sum up the runs of one policy, one per seed: differences of the means over seeds.

    A 99th percentile of a hundred waits is one of them, and one decision that goes
    the other way, after a tie, makes it another: so single runs are no sample.
    """
    whole = Pair(pairs[0].workload, pairs[0].policy, are_equal=all(pair.are_equal for pair in pairs))
    for name in pairs[0].numbers:
        values = [[pair.numbers[name][host] or 0 for pair in pairs] for host in (0, 1)]
        whole.numbers[name] = tuple(sum(each) / len(each) for each in values)
    n = max(len(shares) for pair in pairs for shares in pair.shares)
    whole.shares = tuple(
        np.mean(
            [np.pad(pair.shares[host], ((0, n - len(pair.shares[host])), (0, 0))) for pair in pairs], axis=0
        )
        for host in (0, 1)
    )
    whole.share_points = share_points(*whole.shares)
    whole.switches = _relative(*whole.numbers["switches"])
    whole.response = _relative(*whole.numbers["response_ns_mean"], minimum=tick_ns / 100)
    whole.p99_ticks = (
        max(
            abs(whole.numbers[name][0] - whole.numbers[name][1])
            for name in ("response_ns_p99", "wakeup_ns_p99")
        )
        / tick_ns
    )
    return whole


def _relative(real: float, simulated: float, *, minimum: float = 0.0) -> float:
    """Difference by the simulator's value; what is less than `minimum` is no difference."""
    if abs(real - simulated) <= minimum or not simulated:
        return 0.0
    return (real - simulated) / simulated


def table(cells: list[Cell], seeds: str = "seed 1") -> str:
    """Write the cells of one number of CPUs as Markdown: a row per workload, a column per policy.

    A sentence of counts, the table, and a note for each number in it.
    """
    by_name = {(cell.costly.workload, cell.costly.policy): cell for cell in cells}
    workloads, policies = (list(dict.fromkeys(names)) for names in zip(*by_name, strict=True))
    lines = [f"| workload | {' | '.join(policies)} |", "|---" * (len(policies) + 1) + "|"]
    notes = []
    for workload in workloads:
        row = []
        for policy in policies:
            cell = by_name[workload, policy]
            if not cell.mark:
                notes.append(f"{len(notes) + 1}. *{workload}* under *{policy}*: {_note(cell.costly)}")
            row.append(cell.mark or f"({len(notes)})")
        lines.append(f"| {workload} | {' | '.join(row)} |")
    return "\n".join([_head(cells, seeds), "", *lines, "", *notes])


def write_table(name: str, text: str, document: Path = DOCUMENT) -> None:
    """Replace a table of a page, with today's date; see `write_between`."""
    write_between(name, f"Measured on {datetime.now(UTC):%Y-%m-%d}. {text}", document)


def copied(program: Path, folder: str) -> Callable[[], Path]:
    """Copy a program, since a build may go on beside a measurement; a function that says where the copy is."""
    own = Path(shutil.copy(program, folder))
    return lambda: own


def _head(cells: list[Cell], seeds: str) -> str:
    """How many cells of which kind."""
    marks = Counter(cell.mark for cell in cells)
    free = [cell.free for cell in cells if not cell.costly.error]
    return (
        f"{len(cells)} pairs, {seeds}, one CPU: in {marks['=']} every decision "
        f"is the same (`=`), {marks['='] + marks['ok']} are within all bounds (`=` or `ok`); in {marks['~']} "
        f"microseconds decide (`~`), and {marks['']} are left (numbered). If nothing cost the simulator any "
        f"time, {sum(pair.are_equal for pair in free)} would be the same and "
        f"{sum(not pair.beyond for pair in free)} within all bounds."
    )


def _note(pair: Pair) -> str:
    """What is beyond the bounds, with the numbers behind it."""
    if pair.error:
        return pair.error.splitlines()[0]
    real, simulated = pair.numbers["response_ns_mean"]
    same = ", though every decision is the same" if pair.are_equal else ""
    return (
        f"{', '.join(pair.beyond)}{same} (kernel and simulator: {pair.numbers['switches'][0]:.0f} and "
        f"{pair.numbers['switches'][1]:.0f} switches, mean response {real / 1e6:.3g} and "
        f"{simulated / 1e6:.3g} ms)"
    )
