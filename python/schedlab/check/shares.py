# SPDX-License-Identifier: MIT
"""Whether tasks had their shares: the property of policies that declare `@shares ATTRIBUTE within KNOB`.

Of any two tasks that have wanted to run all the time since they came, on one CPU, neither is ever further than the bound
from its part of what the two have had. Each may have begun that far behind and end as far ahead, so that what one has
gained on the other stays within twice the bound; a slice ends at a tick. What a task is owed that was asleep is the
policy's to say, and so is what one has that yields.

Where a task that has slept is owed CPU time, those that ran meanwhile are ahead of what all have had, by as much, and one
that comes then is not: of two tasks that have come at different times, the later after another had slept, neither is held.

A world is looked at if it has one CPU, and tasks that compute, sleep and take a lock.
Read next: promises.py, the caller; hosts/check/promises.c, the same sum for each world.
"""

from __future__ import annotations

from itertools import combinations

from ..program.file import Program
from ..records.file import Kind, Records, Stop
from ..units import format_duration
from ..workload.phases import ATTRIBUTES


def weights_of(program: Program, attribute: str) -> dict[int, int]:
    """What each task is entitled to, by its pid; without the attribute, by its weight."""
    key = ATTRIBUTES[attribute][0]
    return {
        pid: int(row[attribute if row["attr_given"] >> key & 1 else "weight"])
        for pid, row in enumerate(program.task_rows, 1)
    }


class _Course:
    """How long one task has run."""

    def __init__(self, came_ns: int, has_one_slept: bool) -> None:
        self.has_one_slept = has_one_slept  #: Another task, before this one came.
        self.ran_ns = 0
        self.came_ns = came_ns
        self.since_ns: int | None = None  #: Runs since then.

    def had_ns(self, now_ns: int) -> int:
        """CPU time until now."""
        return self.ran_ns + (now_ns - self.since_ns if self.since_ns is not None else 0)


class _Pair:
    """Two tasks that both want to run: how far what the first has gained has been, both ways."""

    def __init__(self, from_ns: int, had_ns: tuple[int, int]):
        self.from_ns, self.had_ns = from_ns, had_ns
        self.low_ns = self.high_ns = 0.0

    def look(self, had_ns: tuple[int, int], weights: tuple[int, int]) -> float:
        """How far one has gone from its part of what both have had. Return: in ns, from end to end."""
        one, other = (now - before for now, before in zip(had_ns, self.had_ns, strict=True))
        gained_ns = one - (one + other) * weights[0] / sum(weights)
        self.low_ns, self.high_ns = min(self.low_ns, gained_ns), max(self.high_ns, gained_ns)
        return self.high_ns - self.low_ns


def broken_share(records: Records, program: Program, attribute: str, allowed_ns: int) -> str | None:
    """Which two tasks are further from their shares than is allowed, and when; None: no two."""
    names, weights = program.names, weights_of(program, attribute)
    courses: dict[int, _Course] = {}  # of tasks that have wanted to run all the time
    pairs: dict[tuple[int, int], _Pair] = {}
    has_one_slept = False
    for t_ns, kind, pid, flags in records.events[["t_ns", "kind", "task", "flags"]].tolist():
        has_one_slept |= kind == Kind.STOP and flags == Stop.BLOCKED
        if kind == Kind.ARRIVE:
            courses[pid] = _Course(t_ns, has_one_slept)
        elif pid not in courses:
            continue
        elif kind == Kind.RUN:
            courses[pid].since_ns = t_ns
        elif kind == Kind.STOP:
            courses[pid].ran_ns, courses[pid].since_ns = courses[pid].had_ns(t_ns), None
            if flags not in (Stop.PREEMPTED, Stop.HORIZON):
                del courses[pid]
        else:
            continue
        for pair in combinations(sorted(courses), 2):
            one, other = (courses[each] for each in pair)
            if one.came_ns != other.came_ns and max(one, other, key=lambda each: each.came_ns).has_one_slept:
                continue
            had_ns = (courses[pair[0]].had_ns(t_ns), courses[pair[1]].had_ns(t_ns))
            found = pairs.setdefault(pair, _Pair(t_ns, had_ns))
            entitled = (weights[pair[0]], weights[pair[1]])
            if found.look(had_ns, entitled) > allowed_ns:
                words = [
                    f"{names[each]}[{each}] ({weight}) had {format_duration(now - before)}"
                    for each, weight, now, before in zip(pair, entitled, had_ns, found.had_ns, strict=True)
                ]
                return (
                    f"from {format_duration(found.from_ns)} to {format_duration(t_ns)} two tasks wanted the CPU: "
                    f"{' and '.join(words)}, which is further from their shares than {format_duration(allowed_ns)}"
                )
    return None
