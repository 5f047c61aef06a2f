# SPDX-License-Identifier: MIT
"""How fast each CPU of a run was, what work was done there, and what energy that took.

A machine with `--capacity` says so in SPEED records: the work that a CPU does in a unit of
time, of 1024 that the fastest one does. Without such records all CPUs are the same, and
CPU time is work.

Invariant: speeds come from the records alone.
Read next: consistency.py, which holds work against programs; dictionary.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..records.file import Kind
from .timeline import Timeline, sum_per_group

FULL_SPEED = 1024
#: Watts of the fastest CPU while it is busy, and of each CPU at all times.
BUSY_WATTS, IDLE_WATTS = 1.0, 0.05
#: Supply voltage of a CPU that hardly runs, of that of the fastest.
VOLTAGE_MIN = 0.5


def power_watts(speed: np.ndarray) -> np.ndarray:
    """What a busy CPU of each speed takes more than an idle one.

    The power of CMOS is C V^2 f (Chandrakasan, Sheng, Brodersen 1992), and Linux' energy model multiplies that of an
    operating point with its busy time; here V rises with the speed from `VOLTAGE_MIN`, linearly.

    >>> power_watts(np.array([1024, 512])).tolist()
    [1.0, 0.28125]
    """
    part = speed / FULL_SPEED
    return BUSY_WATTS * part * (VOLTAGE_MIN + (1 - VOLTAGE_MIN) * part) ** 2


@dataclass(frozen=True)
class Speeds:
    """SPEED records by CPU."""

    #: `t_ns`, `speed`: for each CPU int64 arrays, shape (n_changes,): from when on it has which speed.
    t_ns: list[np.ndarray] = field(repr=False)
    speed: list[np.ndarray] = field(repr=False)

    @property
    def are_constant(self) -> bool:
        """Whether no CPU ever changes its speed."""
        return all(len(each) == 1 for each in self.speed)

    def between(
        self,
        begin_ns: np.ndarray,
        end_ns: np.ndarray,
        cpu: np.ndarray,
        rate: Callable[[np.ndarray], np.ndarray],
    ) -> np.ndarray:
        """Integrals over time of `rate`, a function of speed, each on one CPU; shape (n,)."""
        found = np.zeros(len(cpu), rate(np.zeros(1, np.int64)).dtype)
        for number, (times, speed) in enumerate(zip(self.t_ns, self.speed, strict=True)):
            chosen = np.flatnonzero(cpu == number)
            value = rate(speed)
            until = np.concatenate(([0], np.cumsum(value[:-1] * np.diff(times))))
            for sign, at_ns in ((1, end_ns[chosen]), (-1, begin_ns[chosen])):
                place = np.searchsorted(times, at_ns, side="right") - 1
                found[chosen] += sign * (until[place] + value[place] * (at_ns - times[place]))
        return found


def speeds_of(timeline: Timeline) -> Speeds | None:
    """The speeds of a run's CPUs, where the records have any."""
    events = timeline.records.events[timeline.kind == Kind.SPEED]
    if not len(events):
        return None
    by_cpu = [events[events["cpu"] == cpu] for cpu in range(timeline.records.n_cpus)]
    return Speeds(
        t_ns=[each["t_ns"].astype(np.int64) for each in by_cpu],
        speed=[each["arg"].astype(np.int64) for each in by_cpu],
    )


def work_received_ns(timeline: Timeline) -> tuple[np.ndarray, int]:
    """Work that was done of each task: the CPU time that it would have taken on the fastest CPU.

    int64, shape (n_tasks,), in the order of `timeline.by_task.keys`, in whole nanoseconds; and how far each may be from
    it: where a CPU's speed changes, it is not known when within a run ticks took their time.
    """
    tasks, speeds = timeline.by_task, speeds_of(timeline)
    if speeds is None:
        ran = np.where(tasks.kind == Kind.STOP, tasks.arg, 0).astype(np.int64)
        return sum_per_group(ran, tasks.first), 0
    spans = timeline.spans
    begin_ns, end_ns, cpu, ran_ns, task = (
        column[spans.is_run] for column in (spans.begin_ns, spans.end_ns, spans.cpu, spans.ran_ns, spans.task)
    )
    stolen_ns = end_ns - begin_ns - ran_ns
    work = speeds.between(begin_ns + stolen_ns, end_ns, cpu, lambda speed: speed)
    received = np.zeros(len(tasks.keys), np.int64)
    np.add.at(received, np.searchsorted(tasks.keys, task), work)
    return received // FULL_SPEED, 0 if speeds.are_constant else int(stolen_ns.sum())


def energy_j(timeline: Timeline) -> float | None:
    """Energy of all CPUs in joules; None where the machine does not say how fast they are.

    Time in the scheduler, and what others had, is busy time.
    """
    speeds = speeds_of(timeline)
    if speeds is None:
        return None
    spans, records = timeline.spans, timeline.records
    # What is overhead between two tasks comes right before the second.
    busy_ns = np.where(spans.is_run, spans.end_ns - spans.begin_ns, spans.overhead_ns)
    busy = speeds.between(spans.end_ns - busy_ns, spans.end_ns, spans.cpu, power_watts)
    return float(busy.sum() + IDLE_WATTS * records.n_cpus * records.end_ns) / 1e9
