# SPDX-License-Identifier: MIT
"""Measure how many worlds `schedlab check` tries; behind `schedlab selfbench check`.

Figures are of CPU time, of Python and of the simulator's processes together, once both are
started. The peer is the way each world went before: alone, in a process of its own, its
records judged in Python.

Read next: python/schedlab/check/quick.py.
"""

from __future__ import annotations

import random
import resource
from collections.abc import Callable
from dataclasses import replace

from schedlab.check.search import CHUNK_WORLDS, Task
from schedlab.check.trial import PROPERTIES
from schedlab.check.world import Group, Phase, World, draw_world, interleaved
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy

POLICIES = ("fifo", "mlfq", "cfs")
MS = 1_000_000
NR_WORLDS = 3_000
NR_ALONE = 150


def small_world(rng: random.Random) -> World:
    """2 to 4 CPUs, 2 to 6 tasks that run and sleep for a tick or a few, some 200 switches."""
    groups = tuple(
        Group("sleeper", (Phase("run", rng.randint(1, 4) * MS), Phase("sleep", rng.randint(1, 4) * MS)))
        for _ in range(rng.randint(2, 6))
    )
    return World(rng.randint(2, 4), "", MS, groups, seed=rng.randrange(1, 1 << 16), horizon_ns=250 * MS)


def cpu_seconds() -> float:
    """Of this process and of those it has ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def worlds_per_s(
    task: Task, draw: Callable[[random.Random], World], n_worlds: int, *, is_alone: bool
) -> float:
    """Worlds that are drawn and tried in a second of CPU time."""
    rng = random.Random(task.seed)
    begun = cpu_seconds()
    with task.laboratory() as laboratory:
        for _ in range(n_worlds // CHUNK_WORLDS):
            worlds = [draw(rng) for _ in range(CHUNK_WORLDS)]
            if is_alone:
                for world in worlds:
                    laboratory.try_alone(world)
            else:
                laboratory.try_worlds(worlds)
    return n_worlds / (cpu_seconds() - begun)


def measure(entry: Callable[..., dict], *, is_quick: bool = False) -> dict:
    """Measure three policies, with and without interleavings, as `selfbench.measure`; quick: a tenth of the worlds."""
    scale = 10 if is_quick else 1
    rows = []
    for name in POLICIES:
        task = Task(build_policy(load_policy(name)), frozenset(PROPERTIES) - {"worse"}, seed=1)
        policy, values = task.built.policy, task.built.values
        kinds: dict[str, tuple[Callable[[random.Random], World], bool]] = {
            "drawn": (lambda rng: draw_world(rng, policy, values), False),  # noqa: B023
            "small": (small_world, False),
            "small_interleaved": (lambda rng: interleaved(rng, small_world(rng)), True),
        }
        for kind, (draw, races) in kinds.items():
            own = replace(task, races=races)
            value = worlds_per_s(own, draw, NR_WORLDS // scale, is_alone=False)
            alone = worlds_per_s(own, draw, NR_ALONE // scale * 2, is_alone=True)
            rows.append(
                entry(
                    f"check_{kind}_worlds_per_cpu_s_{name}",
                    value,
                    "1/s",
                    "higher",
                    peer="alone",
                    peer_value=alone,
                )
            )
    return {"benchmarks": rows, "skipped": []}
