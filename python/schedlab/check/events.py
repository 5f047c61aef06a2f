# SPDX-License-Identifier: MIT
"""Draw what happens to the machine of a world, beside what its tasks do.

Most schedulers that failed on users' machines, and not in tests, did so when one of these happened.
Read next: workload/events.py, what there is.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ..workload.events import KINDS, OF_CPU, OF_GROUP, Event

#: So many worlds have some.
EVENTS_SHARE = 1 / 12
#: In so many, clocks of CPUs differ, ...
SKEWED_SHARE = 1 / 12
#: In so many, they do not begin at 0.
STARTED_SHARE = 1 / 12
#: ... by so much: as much as caches, and machines whose counters were set one after the other, leave.
SKEWS_NS = (50, 1_000, 10_000)
_MS = 1_000_000
#: Those of which no task waits for longer.
HARMLESS = ("skew", "start")
#: Those of cgroups come with these, see limits.py.
DRAWN = tuple(kind for kind in KINDS if kind not in (*HARMLESS, *OF_GROUP))


def draw_events(rng: random.Random, n_cpus: int, time: Callable[[], int]) -> tuple[tuple[Event, ...], bool]:
    """Draw one to three kinds, and of each one or more; return also whether there is a kernel thread."""
    kinds = rng.sample(DRAWN, rng.choice((1, 1, 2, 3)))
    events = []
    for kind in kinds:
        first = int(kind == "offline")  # CPU 0 always is there
        if first == n_cpus:
            continue
        for _ in range(rng.choice((1, 1, 3, 6)) if kind in OF_CPU else kind != "thread"):
            at_ns = 0 if kind == "exit" else rng.choice((time(), 20 * _MS, 50 * _MS, 200 * _MS + time()))
            which = rng.randrange(first, n_cpus) if kind in OF_CPU else 0
            if kind == "fail":
                which = rng.choice((0, 0, 1, 5, 20))
            events.append(Event(kind, which, at_ns, 0 if kind == "fail" else time()))
    return tuple(events), "thread" in kinds


def draw_skews(rng: random.Random, n_cpus: int) -> tuple[Event, ...]:
    """Draw by how much the clock of each CPU is ahead of the others'; at least one is not."""
    behind = rng.randrange(n_cpus)
    return tuple(
        Event("skew", cpu, 0, rng.choice(SKEWS_NS))
        for cpu in range(n_cpus)
        if cpu != behind and rng.random() < 0.7
    )


def draw_start(rng: random.Random) -> tuple[Event, ...]:
    """Draw what the clocks read at first: shortly before 2^32 us, or ms, or 104 days; an hour is the least."""
    begin_ns = rng.choice((1000 << 32, 1000 << 32, 1_000_000 << 32, 1 << 53))
    return (Event("start", 0, 0, begin_ns - rng.choice((0, 1, 5 * _MS, 100 * _MS, 500 * _MS))),)


def without_cpus(events: tuple[Event, ...], n_cpus: int) -> tuple[Event, ...]:
    """Those of a smaller machine."""
    return tuple(event for event in events if event.kind not in OF_CPU or event.which < n_cpus)
