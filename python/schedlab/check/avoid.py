# SPDX-License-Identifier: MIT
"""The moment until which a failure could still be avoided.

        |--- some disturbance avoids it ---|--- none of them does ---|--- it fails
        0                            avoidable until

The world is run again, with a higher class that takes a CPU for a while at one instant, and all before is as
it was: half of a tick, a tick, 30 ms, each CPU. Where one of these makes the world pass, what comes later decided.
The last such instant is looked for by halves among those at which something happened.

Invariant: what is said to be avoided was run, and did not fail so; what is said to be certain failed with each.
Read next: search.py, the caller.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import SchedlabError, SpecError
from ..stats.sentences import show_time
from ..units import counted
from ..workload.events import Event
from .trial import Finding, Laboratory
from .world import MS, World

#: What a disturbance can tell of: properties that are held where a higher class has a CPU.
DECIDED = ("error", "stall", "lost", "invariant")
CPUS_MAX = 4


@dataclass(frozen=True)
class Avoidable:
    """When a failure was decided."""

    until_ns: int  #: The last instant at which a disturbance avoids it; -1: none does.
    event: Event | None  #: That disturbance.
    certain_ns: int  #: The next instant, at which none does; -1: at each one does.
    n_tried: int  #: Disturbances of an instant.
    is_at_end: bool = False  #: Whether that next instant is the last of the run.

    @property
    def sentence(self) -> str:
        """What a person reads."""
        n = counted(self.n_tried, "disturbance")
        if self.event is None:
            return f"When was it decided? Before anything happened: of {n} at the beginning none avoids it."
        by = f"with CPU {self.event.which} taken by a higher class for {show_time(self.event.time_ns)} then, it does not fail"
        if self.certain_ns < 0:
            return f"When was it decided? It could be avoided to the end: at {_at(self.until_ns)}, {by}."
        if self.is_at_end:
            return f"When was it decided? Until {_at(self.until_ns)} it could be avoided: {by}. The next that happened, at {_at(self.certain_ns)}, was the last."
        return (
            f"When was it decided? Until {_at(self.until_ns)} it could be avoided: {by}. "
            f"From {_at(self.certain_ns)} on none of {n} avoids it."
        )


def _at(ns: int) -> str:
    """An instant, exactly."""
    return f"{ns / 1e6:,.6f}".rstrip("0").rstrip(".") + " ms"


def avoidable(
    laboratory: Laboratory, world: World, finding: Finding, instants: Sequence[int], seconds_max: float
) -> Avoidable | None:
    """Look for the last of these instants at which a disturbance avoids a failure; None where time does not suffice."""
    begun = time.monotonic()
    disturbances = [
        (cpu, time_ns)
        for cpu in range(min(world.n_cpus, CPUS_MAX))
        for time_ns in (world.tick_ns // 2, world.tick_ns, 30 * MS)
    ]

    def avoided_at(at_ns: int) -> Event | None:
        events = [Event("take", cpu, at_ns, time_ns) for cpu, time_ns in disturbances]
        trials = laboratory.try_worlds([replace(world, events=(*world.events, event)) for event in events])
        for event, trial in zip(events, trials, strict=True):
            if trial.finding is None or trial.finding.broken != finding.broken:
                return event
        return None

    low, high, event = -1, len(instants), None
    try:
        while low + 1 < high:
            if time.monotonic() - begun > seconds_max:
                return None
            # The ends first: most failures are decided at one of them.
            middle = 0 if low < 0 else high - 1 if high == len(instants) else (low + high) // 2
            found = avoided_at(instants[middle])
            if found is None:
                high = middle
            else:
                low, event = middle, found
    except (SpecError, SchedlabError):
        return None
    certain_ns = instants[high] if high < len(instants) else -1
    is_at_end = high == len(instants) - 1
    return Avoidable(instants[low] if event else -1, event, certain_ns, len(disturbances), is_at_end)
