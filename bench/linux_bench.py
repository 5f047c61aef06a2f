# SPDX-License-Identifier: MIT
"""What it costs to start a command under a class; behind `schedlab selfbench linux`.

The same `/bin/true` is started by schedlab-launch, with its keeper, and by itself.
CPU time is what Linux counted of the whole tree, wall time the shortest of all
starts, since disturbances only ever make one longer.

Read next: hosts/linux/launch/main.c.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable

from schedlab.hosts.linux.launch import Command, Launcher
from schedlab.policy.linux_class import parse_class

COMMAND = ("/bin/true",)
CLASSES = ("SCHED_OTHER", "SCHED_FIFO:10")
#: What issue 6 allows.
ADDED_US_MAX = 1000
TIMEOUT_NS = 10_000_000_000


def measure(entry: Callable[..., dict], *, is_quick: bool) -> dict:
    """Measure the starts, as `selfbench.measure`; quick: fewer."""
    nr = 50 if is_quick else 500
    alone = _measure(nr, _start_alone)
    rows, skipped = [], []
    for name in CLASSES:
        try:
            cost = _measure_launcher(nr, name)
        except Exception as error:
            skipped.append(f"{name}: {error}")
            continue
        for what, unit, mine, peers in (
            ("CPU time", "us", cost[0], alone[0]),
            ("shortest", "us", cost[1], alone[1]),
        ):
            rows.append(
                entry(
                    f"start of a command under {name}, {what}",
                    mine,
                    unit,
                    "lower",
                    peer="/bin/true by itself",
                    peer_value=peers,
                )
            )
        rows.append(
            entry(
                f"added to a start under {name}",
                cost[1] - alone[1],
                "us",
                "lower",
                peer="at most",
                peer_value=ADDED_US_MAX,
            )
        )
    return {"benchmarks": rows, "skipped": skipped}


def _cpu_us() -> float:
    """CPU time of all children that have ended and been waited for, in microseconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e6


def _measure(nr: int, start: Callable[[], None]) -> tuple[float, float]:
    """Mean CPU time and shortest wall time of a start, in microseconds."""
    before_us, shortest_ns = _cpu_us(), float("inf")
    for _ in range(nr):
        from_ns = time.perf_counter_ns()
        start()
        shortest_ns = min(shortest_ns, time.perf_counter_ns() - from_ns)
    return (_cpu_us() - before_us) / nr, shortest_ns / 1000


def _start_alone() -> None:
    os.waitpid(os.posix_spawn(COMMAND[0], COMMAND, os.environ), 0)


def _measure_launcher(nr: int, name: str) -> tuple[float, float]:
    """The same through the launcher, whose own CPU time counts when it has ended."""
    command = Command(COMMAND, parse_class(name))
    before_us = _cpu_us()
    with Launcher() as launcher:
        launcher.run([command], timeout_ns=TIMEOUT_NS)
        _, shortest_us = _measure(nr, lambda: launcher.run([command], timeout_ns=TIMEOUT_NS))
    return (_cpu_us() - before_us) / (nr + 1), shortest_us
