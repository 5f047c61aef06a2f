# SPDX-License-Identifier: MIT
"""What happens to a machine beside what its tasks do: the tables `[[event]]` of a workload.

        [[event]] -> Event -> "take:1@20000000+5000000" -> hosts/check/events.c

Invariant: each event ends, so that none keeps a task waiting indefinitely.
Read next: hosts/check/events.c, which says what each does; check/events.py, which draws them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..units import format_duration

#: Kinds, and what each is to a person; `{which}`, `{at}` and `{time}` are filled in.
KINDS = {
    "take": "CPU {which} is a higher class's from {at} on, for {time}",
    "offline": "CPU {which} is offline from {at} on, for {time}",
    "pin": "the task that runs on CPU {which} at {at} disables migration for {time}",
    "kick": "kicks of CPU {which} that are sent within {time} from {at} on arrive when that is over",
    "reload": "the policy is unloaded at {at}, and loaded again after {time}",
    "fail": "from {at} on, the helper call that may fail after {which} others does",
    "exit": "the end of each task takes {time}",
    "thread": "task {which}, from 0, is a kernel thread",
    "skew": "scx_bpf_now() is {time} ahead on CPU {which}",
    "start": "clocks read {time} at the beginning",
    "weight": "from {at} on the weight of group {group} is {value}",
    "quota": "from {at} on the quota of group {group} is {time} of each period",
}
#: Those whose `which` is a CPU; there may be several.
OF_CPU = ("take", "offline", "pin", "kick", "skew")
#: Those whose `which` is the object of a group, and whose `time_ns` is what it gets.
OF_GROUP = ("weight", "quota")
#: Those that a guest has, too: a real-time task, hotplug, and what is written into a cgroup's files.
IN_GUEST = {"take": "above", "offline": "offline", "weight": "weight", "quota": "quota"}
#: Those that hosts other than the simulator have.
ELSEWHERE = {"guest": tuple(IN_GUEST), "uthreads": OF_GROUP}
#: Keys of each kind's table; `at` and `calls` are 0 where they are left out.
KEYS = {
    **dict.fromkeys(("take", "offline", "pin", "kick"), ("cpu", "at", "time")),
    "reload": ("at", "time"), "fail": ("calls", "at"), "exit": ("time",), "thread": ("task",),
    "skew": ("cpu", "time"), "start": ("time",),
    "weight": ("group", "at", "weight"), "quota": ("group", "at", "quota"),
}  # fmt: skip
#: As hosts/check/events.c.
EVENTS_MAX = 64
_TEXT = re.compile(r"(\w+):(\d+)@(\d+)\+(\d+)")


@dataclass(frozen=True)
class Event:
    """Something that happens once, or to each task."""

    kind: str  #: Of `KINDS`.
    which: int  #: A CPU; of `fail`, how many calls do not; of `thread`, a task; of a group, its object.
    at_ns: int
    time_ns: int  #: Of a group what it gets: its weight, or its quota.
    group: str = ""  #: Name of the group.

    def __str__(self) -> str:
        """As hosts/check takes it."""
        return f"{self.kind}:{self.which}@{self.at_ns}+{self.time_ns}"

    @property
    def sentence(self) -> str:
        """What a person reads."""
        at, time = format_duration(self.at_ns), format_duration(self.time_ns)
        return KINDS[self.kind].format(
            which=self.which, at=at, time=time, group=self.group, value=self.time_ns
        )

    def lines(self, task: str = "") -> list[str]:
        """Its table in a workload; of `thread`, with the name of the task."""
        values = {
            "cpu": str(self.which), "calls": str(self.which), "task": f'"{task}"',
            "at": f'"{format_duration(self.at_ns)}"', "time": f'"{format_duration(self.time_ns)}"',
            "group": f'"{self.group}"', "weight": str(self.time_ns), "quota": f'"{format_duration(self.time_ns)}"',
        }  # fmt: skip
        return [
            "",
            "[[event]]",
            f'kind = "{self.kind}"',
            *(f"{key} = {values[key]}" for key in KEYS[self.kind]),
        ]


def read_events(text: str) -> tuple[Event, ...]:
    """Read what `str` has written of several, with commas; ValueError where it is none."""
    events = []
    for part in filter(None, text.split(",")):
        found = _TEXT.fullmatch(part)
        if found is None or found[1] not in KINDS:
            raise ValueError(part)
        events.append(Event(found[1], int(found[2]), int(found[3]), int(found[4])))
    return tuple(events)


def are_cpus_steady(events: Iterable[Event]) -> bool:
    """Whether each CPU is there all the time."""
    return not any(event.kind == "offline" for event in events)


def has_exact_work(events: Iterable[Event]) -> bool:
    """Whether tasks run for as long as their programs say, and no longer."""
    return not any(event.kind == "exit" for event in events)
