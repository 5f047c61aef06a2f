# SPDX-License-Identifier: MIT
"""Make a world that breaks a property as small as it can be made.

Greedy: of the worlds that are simpler by one step, the first that still fails in the
same way is gone on with, until none does. The kind of the failure is kept: otherwise a
stall would shrink into another bug.

Read next: search.py.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace

from ..errors import SpecError
from .trial import Finding, Laboratory
from .world import World, simpler_worlds


@dataclass(frozen=True)
class Shrunk:
    """The smallest world that was found.

    Attributes
    ----------
    world : World
        It fails.
    finding : Finding
        How.
    nr_trials : int
        Worlds that were tried for it.
    seconds : float
        On the wall clock.
    """

    world: World
    finding: Finding
    nr_trials: int
    seconds: float


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
    nr_trials, is_smaller = 0, True
    while is_smaller and time.monotonic() - begun < seconds_max:
        is_smaller = False
        for simpler in simpler_worlds(world, slice_ns):
            found = None
            with contextlib.suppress(SpecError):
                found = laboratory.try_world(simpler).finding
                nr_trials += 1
            if found is not None and found.signature == finding.signature:
                world, finding, is_smaller = simpler, found, True
                break
            if time.monotonic() - begun >= seconds_max:
                break
    # What takes a minute to be seen says so to whoever runs it.
    world = replace(world, horizon_ns=finding.horizon_ns)
    return Shrunk(world, finding, nr_trials, time.monotonic() - begun)
