# SPDX-License-Identifier: MIT
"""Make a world that breaks a property as small as it can be made.

Greedy: of the worlds that are simpler by one step, the first that still fails in the
same way is gone on with, until none does. The kind of the failure is kept: otherwise a
stall would shrink into another bug. Where CPUs interleave, a list of switches seldom fits
a simpler world: others are drawn for it.

Read next: search.py.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..errors import SpecError
from ..units import format_duration
from .events import without_cpus
from .limits import simpler_limits
from .races import fewer_switches, n_switches
from .trial import Finding, Laboratory
from .world import CPUS, MS, Group, Phase, World

#: Interleavings that are drawn for a simpler world, and switches in each.
NR_INTERLEAVINGS = 8
NR_SWITCHES_MAX = 50


@dataclass(frozen=True)
class Shrunk:
    """The smallest world that was found."""

    world: World  #: It fails.
    finding: Finding  #: How.
    n_trials: int  #: Worlds that were tried for it.
    seconds: float  #: On the wall clock.
    is_interrupted: bool = False  #: By Ctrl-C, so that it may not be the smallest.


def _interleavings(world: World, simpler: World) -> Iterator[World]:
    """The simpler world; with other interleavings, too, where more than the switches is simpler."""
    yield simpler
    if world.interleaving and simpler.interleaving == world.interleaving:
        for seed in range(NR_INTERLEAVINGS):
            yield replace(simpler, interleaving=f"{seed}:{NR_SWITCHES_MAX}")


def shrink(
    laboratory: Laboratory, world: World, finding: Finding, *, slice_ns: int, seconds_max: float = 30.0
) -> Shrunk:
    """Shrink a world that breaks a property, by the same signature, for at most so many seconds."""
    begun = time.monotonic()
    n_trials, is_smaller, is_interrupted = 0, True, False
    size_first = world.size
    while is_smaller and time.monotonic() - begun < seconds_max:
        is_smaller = False
        try:
            for simpler in simpler_worlds(world, slice_ns):
                for candidate in _interleavings(world, simpler):
                    trial = None
                    with contextlib.suppress(SpecError):
                        trial = laboratory.try_world(candidate)
                        n_trials += 1
                    found = trial.finding if trial else None
                    if not trial or not found or found.signature != finding.signature:
                        continue
                    # Of a list, the switches that the run has come to: with many more of them a simpler world is none.
                    candidate = replace(candidate, interleaving=trial.interleaving)
                    if n_switches(world.interleaving) and candidate.size > max(world.size, size_first // 2):
                        continue
                    world, finding, is_smaller = candidate, found, True
                    break
                if is_smaller or time.monotonic() - begun >= seconds_max:
                    break
        except KeyboardInterrupt:
            is_smaller, is_interrupted = False, True
    # What takes a minute to be seen says so to whoever runs it.
    world = replace(world, horizon_ns=finding.horizon_ns)
    return Shrunk(world, finding, n_trials, time.monotonic() - begun, is_interrupted)


# ---- what is simpler by one step ----------------------------------------------------


def simpler_worlds(world: World, default_slice_ns: int) -> Iterator[World]:
    """List worlds that are simpler by one step, those that save most first; times near the slice go last."""
    return (simpler.tidied() for simpler in _simpler_worlds(world, default_slice_ns))


def _simpler_worlds(world: World, default_slice_ns: int) -> Iterator[World]:
    groups = world.groups
    for interleaving in fewer_switches(world.interleaving):
        yield replace(world, interleaving=interleaving)
    if len(groups) > 1:
        for at in range(len(groups)):
            yield replace(world, groups=_without(groups, at))
    for n_cpus in [n for n in CPUS if world.n_cpus_min <= n < world.n_cpus]:
        yield _on_cpus(world, n_cpus)
    if world.topology:
        yield replace(world, topology="")
    for at in range(len(world.events)):
        yield replace(world, events=world.events[:at] + world.events[at + 1 :])
    for at, limit in enumerate(world.limits):
        for each in simpler_limits(limit):
            yield replace(world, limits=(*world.limits[:at], each, *world.limits[at + 1 :]))
    for at in range(len(world.settings)):
        yield replace(world, settings=world.settings[:at] + world.settings[at + 1 :])
    for at, group in enumerate(groups):
        for simpler in _simpler_groups(group, world.tick_ns, default_slice_ns):
            yield replace(world, groups=(*groups[:at], simpler, *groups[at + 1 :]))
    if world.seed != 1:
        yield replace(world, seed=1)
    if world.tick_ns != MS and not world.given:
        yield replace(world, tick_ns=MS)


def _without(groups: tuple[Group, ...], at: int) -> tuple[Group, ...]:
    """One group fewer; what is changed in the others stays the same."""

    def moved(phase: Phase) -> Phase:
        target = phase.target % len(groups) if phase.target >= 0 else -1
        return replace(phase, target=target - (target > at)) if phase.verb == "change" else phase

    rest = groups[:at] + groups[at + 1 :]
    return tuple(replace(group, phases=tuple(map(moved, group.phases))) for group in rest)


def _on_cpus(world: World, n_cpus: int) -> World:
    """The same tasks on fewer CPUs."""
    groups = tuple(
        replace(group, affinity=tuple(cpu for cpu in group.affinity if cpu < n_cpus))
        for group in world.groups
    )
    limits = tuple(
        replace(each, cpus=tuple(cpu for cpu in each.cpus if cpu < n_cpus)) for each in world.limits
    )
    return replace(
        world, n_cpus=n_cpus, topology=world.topology if n_cpus % 4 == 0 else "", groups=groups, limits=limits,
        events=without_cpus(world.events, n_cpus),
    )  # fmt: skip


def _simpler_groups(group: Group, tick_ns: int, slice_ns: int) -> Iterator[Group]:
    """Groups that are simpler by one step."""
    if group.role not in ("hog", "sleeper"):
        yield Group("sleeper", (Phase("run", MS), Phase("sleep", MS)), affinity=group.affinity)
    if group.role != "hog":
        yield Group("hog", (Phase("run", 100 * MS),), affinity=group.affinity, attributes=group.attributes)
    if group.count > 1:
        yield replace(group, count=group.count - 1)
    if group.affinity:
        yield replace(group, affinity=())
    for at in range(len(group.attributes)):
        yield replace(group, attributes=group.attributes[:at] + group.attributes[at + 1 :])
    if group.cgroup:
        yield replace(group, cgroup="")
    if group.arrival_ns:
        yield replace(group, arrival_ns=0)
    for rounds in (1, 2, 10):
        if group.rounds > rounds:
            yield replace(group, rounds=rounds)
    if len(group.phases) > 1:
        for at in range(len(group.phases)):
            rest = group.phases[:at] + group.phases[at + 1 :]
            if group.rounds or any(phase.verb in ("run", "locked") for phase in rest):
                yield replace(group, phases=rest)
    for at, phase in enumerate(group.phases):
        for time_ns in (MS, tick_ns, slice_ns, 5 * MS):
            is_simpler = _roundness(time_ns) < _roundness(phase.time_ns)
            if phase.time_ns and is_simpler and phase.time_ns != 100 * MS:
                changed = replace(phase, time_ns=time_ns)
                yield replace(group, phases=(*group.phases[:at], changed, *group.phases[at + 1 :]))
    if group.child_ns not in (0, MS):
        yield replace(group, child_ns=MS)


def _roundness(time_ns: int) -> tuple[int, int]:
    """How long a time is to read, then how large it is."""
    return len(format_duration(time_ns)), time_ns
