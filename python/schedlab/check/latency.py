# SPDX-License-Identifier: MIT
"""How long tasks wait that wake up: the property of policies that declare `@latency wake-up within KNOB`.

Of equal tasks on one CPU, one that asks for less than its part waits for the knob's time, to the next tick, for each
other task at most. With `at once` it does not wait at all, where it is beside one other task, which computes: but for its
first 100 ms, in which it may still be behind as a new one is.

Read next: promises.py, which says of which worlds that is so; hosts/check/promises.c, the same for each world.
"""

from __future__ import annotations

from ..program.file import Program
from ..records.file import Kind, Records
from ..units import format_duration

#: With `at once`, a task is looked at that has been there for so long.
SETTLED_NS = 100_000_000


def broken_latency(records: Records, program: Program, allowed_ns: int) -> str | None:
    """Which task has waited for longer than is allowed after it woke up; None: none has."""
    woken: dict[int, int] = {}
    came: dict[int, int] = {}
    for t_ns, kind, pid in [
        *records.events[["t_ns", "kind", "task"]].tolist(),
        (records.end_ns, Kind.END, 0),
    ]:
        for task, since_ns in woken.items():
            if t_ns - since_ns > allowed_ns:
                longer = (
                    f"longer than {format_duration(allowed_ns)}" if allowed_ns else "and did not run at once"
                )
                waited = f"woke up at {format_duration(since_ns)} and waited until {format_duration(t_ns)}"
                return f"{program.names[task]}[{task}] {waited}, {longer}"
        if kind == Kind.ARRIVE:
            came[pid] = t_ns
        elif kind == Kind.WAKE and (allowed_ns or t_ns - came.get(pid, 0) >= SETTLED_NS):
            woken[pid] = t_ns
        elif kind == Kind.RUN:
            woken.pop(pid, None)
    return None
