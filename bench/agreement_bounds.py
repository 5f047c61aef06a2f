# SPDX-License-Identifier: MIT
"""What it means that two hosts agree; agreement.py and agreement_guest.py use it.

A pair of runs of one program is compared with the bounds of the project's design.
Where it is beyond them, the simulator is asked again, with costs and seeds that
are somewhat different (`variations`): nobody knows a host's costs exactly, and if one
of these runs is within the bounds, microseconds decide about this workload under
this policy. That is the mark `~` in the tables of docs/agreement.md.

Read next: docs/agreement.md.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from schedlab.metrics.dictionary import compute_metrics
from schedlab.metrics.timeline import Timeline
from schedlab.records.file import Kind

#: The bounds of the project's design, fixed before the first run.
SHARE_POINTS, SWITCHES, RESPONSE, P99_TICKS = 2.0, 0.10, 0.15, 1.0
NR_VARIATIONS = 40
#: Each cost is multiplied or divided by up to this.
VARIATION = 2.0


@dataclass
class Pair:
    """A run in another host, and one in the simulator.

    Attributes
    ----------
    workload, policy : str
        Which.
    error : str or None
        What kept them from being compared.
    are_equal : bool
        Whether both hosts ran the same tasks in the same order, for the same reasons.
    share_points : float
        Largest difference of a task's share of the CPU time used, in percentage points.
    switches, response : float
        Relative difference of the number of switches and of the mean response time;
        the host's less the simulator's, by the simulator's.
    p99_ticks : float
        Larger difference of the two 99th percentiles (response, wake-up) in ticks.
    numbers : dict
        Both hosts' values behind them.
    """

    workload: str
    policy: str
    error: str | None = None
    are_equal: bool = False
    share_points: float = 0.0
    switches: float = 0.0
    response: float = 0.0
    p99_ticks: float = 0.0
    numbers: dict = field(default_factory=dict)

    @property
    def beyond(self) -> list[str]:
        """Bounds that it exceeds, in words."""
        if self.are_equal:
            return []
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


def decisions(records) -> list[tuple]:
    """List what the scheduler decided: who runs, and why it stops.

    Parameters
    ----------
    records : Records
        Of one run.

    Returns
    -------
    list of tuple
        `(kind, task, cpu, why)` of each RUN and STOP.
    """
    events = records.events
    chosen = events[np.isin(events["kind"], (Kind.RUN, Kind.STOP))]
    why = np.where(chosen["kind"] == Kind.STOP, chosen["flags"], 0)
    return list(zip(chosen["kind"].tolist(), chosen["task"].tolist(), chosen["cpu"].tolist(),
                    why.tolist(), strict=True))


def variations(costs: dict[str, int], seed: int) -> Iterator[tuple[int, dict[str, int]]]:
    """What the simulator is asked again with: what nobody knows exactly.

    Parameters
    ----------
    costs : dict of str to int
        What is charged, in nanoseconds, by the simulator's names.
    seed : int
        Of the policy's random numbers.

    Yields
    ------
    tuple of int and dict of str to int
        Another seed, and each cost halved to doubled; `NR_VARIATIONS` times, the same
        ones for the same arguments.
    """
    draw = random.Random(seed)
    for i in range(NR_VARIATIONS):
        varied = {name: int(ns * VARIATION ** draw.uniform(-1, 1)) for name, ns in costs.items()}
        yield seed + 1 + i, varied


def measure(pair: Pair, program, both, tick_ns: int) -> None:
    """Fill in how two runs differ.

    Parameters
    ----------
    pair : Pair
        Is filled in.
    program : Program
        What was played.
    both : sequence of Records
        Of the host and of the simulator.
    tick_ns : int
        Time between ticks in nanoseconds.
    """
    weight = program.tasks["weight"]
    metrics = [compute_metrics(Timeline(records), weight=weight) for records in both]
    shares = [m.tasks["run_ns"] / m.run["busy_ns"] for m in metrics]
    real, simulated = (m.run for m in metrics)
    p99 = [abs((real[name] or 0) - (simulated[name] or 0)) for name in ("response_ns_p99", "wakeup_ns_p99")]
    pair.are_equal = decisions(both[0]) == decisions(both[1])
    pair.share_points = 100 * float(np.abs(shares[0] - shares[1]).max())
    pair.switches = _relative(real["switches"], simulated["switches"])
    pair.response = _relative(real["response_ns_mean"], simulated["response_ns_mean"],
                              least=tick_ns / 100)  # fmt: skip
    pair.p99_ticks = max(p99) / tick_ns
    for name in ("switches", "response_ns_mean", "response_ns_p99", "wakeup_ns_p99"):
        pair.numbers[name] = (real[name], simulated[name])


def _relative(real: float, simulated: float, *, least: float = 0.0) -> float:
    """Difference by the simulator's value; what is less than `least` is no difference."""
    if abs(real - simulated) <= least or not simulated:
        return 0.0
    return (real - simulated) / simulated
