# SPDX-License-Identifier: MIT
"""Try every schedule of a window: each with at most so many preemptions (CHESS; Musuvathi and Qadeer 2007).

        no switch -> what could come next? -> one switch each -> what could come next? -> ...

A preemption is a switch from a CPU that could go on; only those within the window are tried. Where a CPU
in an event has to stop, each other one that is in an event may go on, which costs nothing.

Invariant: each schedule is run once, fewest switches first, in an order that a world and a window decide.
Read next: hosts/check/interleave.c; search.py, the caller.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ..errors import UsageError
from ..units import format_duration, parse_duration
from .trial import Laboratory, Trial
from .world import World

#: A window that is chosen has no more switches than these which could be the first.
FIRST_MAX = 64
#: Schedules that are run at once.
CHUNK = 50
#: With more there are too many to be run in a day.
PREEMPTIONS_MAX = 8
_BOUND = re.compile(r"all:(\d)(?:@([\w.]+)-([\w.]+?)(?:\+(\d+))?)?")


@dataclass(frozen=True)
class Bound:
    """Which schedules are tried; as text `all:2`, `all:2@4ms-5ms`, `all:2@4ms-5ms+1200`."""

    n_preemptions: int  #: That a schedule has at most.
    #: `from_ns`, `to_ns`: Virtual time of the window, its ends included; -1: it is to be chosen.
    from_ns: int = -1
    to_ns: int = -1
    n_skipped: int = 0  #: Schedules of the window that were run before.

    def __str__(self) -> str:
        if self.from_ns < 0:
            return f"all:{self.n_preemptions}"
        window = f"{format_duration(self.from_ns)}-{format_duration(self.to_ns)}"
        return f"all:{self.n_preemptions}@{window}{f'+{self.n_skipped}' if self.n_skipped else ''}"


def parse_bound(text: str) -> Bound:
    """Read a bound; UsageError where it is none.

    >>> str(parse_bound("all:2@4ms-5ms"))
    'all:2@4ms-5ms'
    """
    found = _BOUND.fullmatch(text)
    if found is None or not int(found[1]) <= PREEMPTIONS_MAX:
        raise UsageError(
            f"--interleave {text}: give all:N or all:N@FROM-TO, such as all:2@4ms-5ms; N is 0 to 8"
        )
    if found[2] is None:
        return Bound(int(found[1]))
    begin, end = (parse_duration(each, place="--interleave") for each in (found[2], found[3]))
    if end < begin:
        raise UsageError(f"--interleave {text}: the window ends before it begins")
    return Bound(int(found[1]), begin, end, int(found[4] or 0))


@dataclass(frozen=True)
class Next:
    """A switch that could follow: as in a list of switches, when, and whether it is a preemption."""

    switch: str
    at_ns: int
    cost: int


def read_nexts(text: str) -> list[Next]:
    """What the simulator says could come next."""
    parts = (each.split("@") for each in text.split(",") if each)
    return [Next(switch, int(at_ns), int(cost)) for switch, at_ns, cost in parts]


@dataclass
class Covered:
    """How much of a window was tried."""

    bound: Bound  #: With the window that was chosen.
    n_run: int = 0  #: Schedules that were run, those before `n_skipped` included.
    n_known: int = 1  #: Schedules that are there; more may be, where not `is_counted`.
    is_counted: bool = True  #: Whether what could follow is known of all.
    n_failed: int = 0  #: That have failed: what could follow on those is not tried.

    @property
    def is_complete(self) -> bool:
        """Whether every schedule was run."""
        return self.is_counted and self.n_run == self.n_known and not self.n_failed


def choose_window(laboratory: Laboratory, world: World, bound: Bound, rng: random.Random) -> Bound:
    """Choose instants that follow on each other, at which CPUs interleave; a window that is there is kept.

    There is none where nothing can interleave, or the run without a switch fails.
    """
    if bound.from_ns >= 0:
        return bound
    for begin in (rng.randrange(world.horizon_ns or 1), 0):
        (trial,) = laboratory.try_worlds([replace(world, interleaving=f"1@{begin}-{1 << 62}:")])
        nexts = read_nexts(trial.nexts or "")
        instants = Counter(each.at_ns for each in nexts)
        if len(nexts) < trial.n_next:
            del instants[nexts[-1].at_ns]  # of which some are missing
        times = [at_ns for at_ns, n in sorted(instants.items()) if n <= FIRST_MAX]
        if times and not trial.finding:
            break
    else:
        return bound
    first = last = rng.randrange(len(times))
    n_first = instants[times[first]]
    while last + 1 < len(times) and n_first + instants[times[last + 1]] <= FIRST_MAX:
        last += 1
        n_first += instants[times[last]]
    return replace(bound, from_ns=times[first], to_ns=times[last])


def every_schedule(
    laboratory: Laboratory, world: World, bound: Bound, is_over: Callable[[], bool] = lambda: False
) -> Iterator[tuple[Covered, list[tuple[World, Trial]]]]:
    """Run every schedule of a window, some at once: what is covered so far, and those that were run since."""
    covered, is_any_unknown = Covered(bound), False
    window = f"@{bound.from_ns}-{bound.to_ns}:"
    level = [("", bound.n_preemptions)]
    while level and not is_over():
        following: list[tuple[str, int]] = []
        for begin in range(0, len(level), CHUNK):
            if is_over():
                return
            chunk = level[begin : begin + CHUNK]
            # Of two CPUs, one that has no preemption left to make is not followed by anything.
            n_before = bound.n_skipped - covered.n_run if world.n_cpus == 2 else 0
            run = [each for at, each in enumerate(chunk) if each[1] or at >= n_before]
            worlds = [replace(world, interleaving=f"{left}{window}{switches}") for switches, left in run]
            trials = laboratory.try_worlds(worlds)
            covered.n_run += len(chunk)
            for (switches, left), trial in zip(run, trials, strict=True):
                covered.n_failed += trial.finding is not None
                if trial.finding is not None:
                    continue
                nexts = read_nexts(trial.nexts or "")
                is_any_unknown |= trial.nexts is None or len(nexts) < trial.n_next
                for each in nexts:
                    following.append((f"{switches},{each.switch}".lstrip(","), left - each.cost))
            rest = level[begin + len(chunk) :] + following
            covered.n_known = covered.n_run + len(rest)
            covered.is_counted = not is_any_unknown and not any(left or world.n_cpus > 2 for _, left in rest)
            yield covered, [*zip(worlds, trials, strict=True)]
        level = following
