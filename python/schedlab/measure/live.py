# SPDX-License-Identifier: MIT
"""What all tasks of this machine do, summed up by the recorder as it is recorded; for `load --guard` and `top`.

    tracepoints -> schedlab-record (hosts/linux/record/sums.c) --a line when asked--> Sums

Read next: hosts/linux/recorder.py, which asks.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

#: Values in ns and how many there were; each is known to 0.4 %, and never below what it was.
Values = Counter[int]


@dataclass(frozen=True)
class Sums:
    """What was since the last answer; all is known up to `seen_ns` on CLOCK_MONOTONIC.

    `window_ns` is the length of that interval, 0 for the first; `n_lost` are events that the kernel's rings
    had no room for since the start. `latencies` are of tasks that began to run after a wake-up, `sum_ns`
    their sum; `ages` of those that wait still. `cpus`: by number, the pid that runs, its name, the number of
    runnable tasks with it, and the ns that tasks waited there. `waiters`: pid, name and ns of those that waited most.
    """

    seen_ns: int
    window_ns: int
    n_lost: int
    latencies: Values
    sum_ns: int
    ages: Values
    oldest_ns: int
    cpus: dict[int, tuple[int, str, int, int]]
    waiters: list[tuple[int, str, int]]


def read_sums(said: dict[str, Any]) -> Sums:
    """Make what the recorder said into sums."""
    return Sums(
        said["seen_ns"],
        said["window_ns"],
        said["lost"],
        Counter(dict(said["latencies"])),
        said["sum_ns"],
        Counter(dict(said["ages"])),
        said["oldest_ns"],
        {number: tuple(rest) for number, *rest in said["cpus"]},
        [tuple(each) for each in said["waiters"]],
    )


def quantile(values: Values, share: float) -> int:
    """The least of these values that is not below such a share of them.

    >>> quantile(Counter({10: 1, 20: 98, 30: 1}), 0.99)
    30
    """
    left = math.ceil(share * (values.total() - 1))
    for value in sorted(values):
        left -= values[value]
        if left < 0:
            return value
    raise ValueError("a quantile of nothing")
