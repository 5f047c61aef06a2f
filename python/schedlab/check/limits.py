# SPDX-License-Identifier: MIT
"""Cgroups of a world: what they are limited to, and how that changes.

Quotas and weights leave each task so much that it hardly starves for as long as the watchdog waits.
Read next: world.py, the caller; events.py, what happens to the machine.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from ..units import format_duration
from ..workload.events import Event

_MS = 1_000_000
#: Between these a mover goes. Where one has a parent, that is a third.
CGROUPS = ("left", "right")
PARENT = "outer"
#: As Linux has it where nobody says otherwise.
WEIGHT, PERIOD_NS = 100, 100 * _MS
_WEIGHTS = (50, WEIGHT, 200)
_PERIODS_NS = (7 * _MS, 20 * _MS, PERIOD_NS)


@dataclass(frozen=True)
class Cgroup:
    """A cgroup, as a workload's `[[group]]` has it; a quota of 0 is none."""

    name: str
    parent: str = ""
    weight: int = WEIGHT
    quota_ns: int = 0
    period_ns: int = PERIOD_NS
    cpus: tuple[int, ...] = ()  #: None: those of its parent.

    @property
    def size(self) -> int:
        """What a person has to read of it; see World.size."""
        return bool(self.parent) + (self.weight != WEIGHT) + 2 * bool(self.quota_ns) + bool(self.cpus)

    def lines(self) -> list[str]:
        """Its table."""
        lines = ["", "[[group]]", f'name = "{self.name}"']
        if self.parent:
            lines.append(f'parent = "{self.parent}"')
        if self.weight != WEIGHT:
            lines.append(f"weight = {self.weight}")
        if self.quota_ns:
            lines.append(f'quota = "{format_duration(self.quota_ns)}"')
        if self.period_ns != PERIOD_NS:
            lines.append(f'period = "{format_duration(self.period_ns)}"')
        if self.cpus:
            lines.append(f"cpus = {[*self.cpus]}")
        return lines


def _quota_ns(rng: random.Random, period_ns: int) -> int:
    """A quota: a quarter of a CPU is the least."""
    return rng.choice((period_ns // 4, period_ns // 2, period_ns - _MS, 2 * period_ns))


def draw_limits(rng: random.Random) -> tuple[Cgroup, ...]:
    """Draw what each cgroup is like, and whether one is in another."""
    is_nested = rng.random() < 0.5
    drawn = []
    for name in ((PARENT,) if is_nested else ()) + CGROUPS:
        period_ns = rng.choice(_PERIODS_NS)
        parent = PARENT if is_nested and name != PARENT and rng.random() < 0.75 else ""
        quota_ns = _quota_ns(rng, period_ns) if rng.random() < 0.5 else 0
        drawn.append(Cgroup(name, parent, rng.choice(_WEIGHTS), quota_ns, period_ns))
    return tuple(each for each in drawn if each.name != PARENT or any(one.parent for one in drawn))


def with_cpus(rng: random.Random, cgroups: tuple[Cgroup, ...], n_cpus: int) -> tuple[Cgroup, ...]:
    """Draw CPUs of one cgroup or more, of those that its parent has."""
    has_own = [rng.random() < 0.5 for _ in cgroups]
    has_own[rng.randrange(len(has_own))] = True
    there, drawn = {"": tuple(range(n_cpus))}, []
    for each, has in zip(cgroups, has_own, strict=True):
        above = there[each.parent]
        cpus = tuple(sorted(rng.sample(above, rng.randint(1, max(1, len(above) - 1))))) if has else ()
        there[each.name] = cpus or above
        drawn.append(replace(each, cpus=cpus))
    return tuple(drawn)


def draw_of_groups(rng: random.Random, limits: tuple[Cgroup, ...]) -> tuple[Event, ...]:
    """Draw none to three changes of weights and quotas; World numbers their objects."""
    events = []
    for _ in range(rng.choice((0, 0, 1, 3))):
        each, at_ns = rng.choice(limits), (rng.choice((20, 50, 200, 333)) + rng.choice((0, 1, 5))) * _MS
        kind = rng.choice(("weight", "quota"))
        value = rng.choice(_WEIGHTS) if kind == "weight" else _quota_ns(rng, each.period_ns)
        events.append(Event(kind, 0, at_ns, value, each.name))
    return tuple(events)


def simpler_limits(each: Cgroup) -> list[Cgroup]:
    """What is simpler by one step: as by default in one respect."""
    simpler = [
        replace(each, quota_ns=0, period_ns=PERIOD_NS),
        replace(each, weight=WEIGHT),
        replace(each, cpus=()),
        replace(each, parent=""),
        # The same part of a CPU.
        replace(
            each, quota_ns=each.quota_ns * PERIOD_NS // each.period_ns // 1000 * 1000, period_ns=PERIOD_NS
        ),
    ]
    return [one for one in simpler if one != each]
