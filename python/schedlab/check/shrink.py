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
from .trial import Finding, Laboratory
from .world import World, simpler_worlds

#: Interleavings that are drawn for a simpler world, and switches in each.
NR_INTERLEAVINGS = 8
NR_SWITCHES_MAX = 50


@dataclass(frozen=True)
class Shrunk:
    """The smallest world that was found.

    Attributes
    ----------
    world : World
        It fails.
    finding : Finding
        How.
    n_trials : int
        Worlds that were tried for it.
    seconds : float
        On the wall clock.
    """

    world: World
    finding: Finding
    n_trials: int
    seconds: float


def _interleavings(world: World, simpler: World) -> Iterator[World]:
    """The simpler world; with other interleavings, too, where more than the switches is simpler."""
    yield simpler
    if world.interleaving and simpler.interleaving == world.interleaving:
        for seed in range(NR_INTERLEAVINGS):
            yield replace(simpler, interleaving=f"{seed}:{NR_SWITCHES_MAX}")


def shrink(
    laboratory: Laboratory, world: World, finding: Finding, *, slice_ns: int, seconds_max: float = 30.0
) -> Shrunk:
    """Shrink a world that breaks a property.

    Parameters
    ----------
    laboratory : Laboratory
        With the policy.
    world : World
        What fails.
    finding : Finding
        How; its signature is kept.
    slice_ns : int
        The policy's slice in nanoseconds.
    seconds_max : float, default 30
        After which the smallest so far is taken.

    Returns
    -------
    Shrunk
        At most as large as `world`.
    """
    begun = time.monotonic()
    n_trials, is_smaller = 0, True
    while is_smaller and time.monotonic() - begun < seconds_max:
        is_smaller = False
        for simpler in simpler_worlds(world, slice_ns):
            for candidate in _interleavings(world, simpler):
                trial = None
                with contextlib.suppress(SpecError):
                    trial = laboratory.try_world(candidate)
                    n_trials += 1
                found = trial.finding if trial else None
                if trial and found and found.signature == finding.signature:
                    # Of a list, the switches that the run has come to.
                    world, finding = replace(candidate, interleaving=trial.interleaving), found
                    is_smaller = True
                    break
            if is_smaller:
                break
            if time.monotonic() - begun >= seconds_max:
                break
    # What takes a minute to be seen says so to whoever runs it.
    world = replace(world, horizon_ns=finding.horizon_ns)
    return Shrunk(world, finding, n_trials, time.monotonic() - begun)
