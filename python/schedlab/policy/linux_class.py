# SPDX-License-Identifier: MIT
"""Linux's scheduling classes by their own names, as a command line has them.

    SCHED_OTHER (nice as we are)  SCHED_OTHER:5 (nice)  SCHED_OTHER:3ms (slice)  SCHED_OTHER:5/3ms
    SCHED_BATCH, as SCHED_OTHER  SCHED_IDLE
    SCHED_FIFO:10  SCHED_RR:10 (priority)  SCHED_DEADLINE:5ms/10ms/10ms
    SCHED_OTHER+editor=SCHED_FIFO:10  a workload whose tasks 'editor' have another class

Must stay true: everything that Linux would refuse for its form is refused here,
with the value and the hint.
Read next: hosts/linux/launch.py, which runs commands under these classes.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import UsageError, did_you_mean
from ..units import parse_duration
from .build import BuiltPolicy
from .find import Policy

#: Numbers of include/uapi/linux/sched.h.
NUMBERS = {
    "SCHED_OTHER": 0, "SCHED_FIFO": 1, "SCHED_RR": 2, "SCHED_BATCH": 3, "SCHED_IDLE": 5,
    "SCHED_DEADLINE": 6,
}  # fmt: skip
REALTIME = ("SCHED_FIFO", "SCHED_RR")
#: The watchdog that ends a command has 99.
PRIORITY_MAX = 98
#: As hosts/linux/play/play.h has it.
TASK_CLASSES_MAX = 8
#: What Linux calls the same classes elsewhere.
_OTHER_NAMES = {"SCHED_NORMAL": "SCHED_OTHER", "SCHED_EXT": None}
#: Stands for the file of a class that is handed on as a policy.
CLASS_FILE = Path("/proc/self/sched")
#: Linux takes no runtime below 1,024 ns, since it counts in that grain.
RUNTIME_MIN_NS = 1024
#: A slice of the fair class beyond these Linux moves to the nearer of them, without a word.
SLICE_MIN_NS, SLICE_MAX_NS = 100_000, 100_000_000


@dataclass(frozen=True)
class LinuxClass:
    """A scheduling class with its parameters."""

    name: str  #: As the user wrote it, such as `"SCHED_FIFO:10"`.
    number: int  #: Linux's number of the class.
    priority: int = 0  #: 1 to 98 for real-time classes, else 0.
    nice: int = 0  #: -20 to 19 for SCHED_OTHER and SCHED_BATCH, else 0.
    slice_ns: int = 0  #: Of SCHED_OTHER and SCHED_BATCH, of the command and what it starts; 0: the machine's.
    #: `runtime_ns`, `deadline_ns`, `period_ns`: Of SCHED_DEADLINE, else 0.
    runtime_ns: int = 0
    deadline_ns: int = 0
    period_ns: int = 0
    #: Classes of the tasks of these names, in place of this one.
    of_tasks: tuple[tuple[str, LinuxClass], ...] = ()

    @property
    def is_realtime(self) -> bool:
        """Whether it goes before all that is not: FIFO, RR and DEADLINE."""
        return bool(self.priority or self.is_deadline)

    @property
    def is_deadline(self) -> bool:
        """Whether it is SCHED_DEADLINE, under which Linux refuses forks."""
        return self.number == NUMBERS["SCHED_DEADLINE"]

    @property
    def has_weights(self) -> bool:
        """Whether nice values mean something in it."""
        return self.number in (NUMBERS["SCHED_OTHER"], NUMBERS["SCHED_BATCH"])

    @property
    def settings(self) -> dict[str, int]:
        """What the launcher is told, by its own words."""
        return {
            "policy": self.number,
            "priority": self.priority,
            "nice": self.nice,
            # Where Linux (6.12 and later) has the slice of its fair class.
            "runtime_ns": self.runtime_ns or self.slice_ns,
            "deadline_ns": self.deadline_ns,
            "period_ns": self.period_ns,
        }


def is_class(text: str) -> bool:
    """Whether a name is meant as a class of Linux, and not as a policy of ours."""
    return text.upper().startswith("SCHED_")


def parse_workload_class(text: str) -> LinuxClass:
    """Read the class of a workload's tasks, some of which may have one of their own.

    >>> parse_workload_class("SCHED_OTHER+editor=SCHED_FIFO:10").of_tasks[0][1].priority
    10
    """
    first, *rest = text.split("+")
    of_tasks = []
    for part in rest:
        task, _, name = part.partition("=")
        if not task or not name:
            raise UsageError(f"{text}: '+{part}' is no TASK=CLASS, such as +editor=SCHED_FIFO:10")
        own = parse_class(name)
        if own.slice_ns:
            raise UsageError(f"{text}: '{name}': a slice is of all tasks; write it before the first '+'")
        of_tasks.append((task, own))
    if len(rest) > TASK_CLASSES_MAX:
        raise UsageError(f"{text}: at most {TASK_CLASSES_MAX} names of tasks may have a class of their own")
    return replace(parse_class(first), name=text, of_tasks=tuple(of_tasks))


def parse_class(text: str) -> LinuxClass:
    """Read a class with its parameters.

    >>> parse_class("SCHED_RR:10").priority
    10
    >>> parse_class("SCHED_DEADLINE:5ms/10ms/10ms").deadline_ns
    10000000
    >>> parse_class("SCHED_FIFO:99")
    Traceback (most recent call last):
    schedlab.errors.UsageError: SCHED_FIFO:99: the priority must be 1 to 98, since 99 is the watchdog's that ends a command
    """
    if "+" in text:
        raise UsageError(f"{text}: only a workload has tasks by name; leave out '+{text.partition('+')[2]}'")
    given, _, parameter = text.partition(":")
    name = _OTHER_NAMES.get(given.upper(), given.upper())
    if name is None:
        raise UsageError(f"{text}: name the policy itself, such as mlfq or ./mine.bpf.c")
    if name not in NUMBERS:
        policy = "; a policy of ours is loaded first, with schedlab load" if "SCHED" not in name else ""
        raise UsageError(f"{text}: Linux has no such class{did_you_mean(name, NUMBERS)}{policy}")
    if name in REALTIME:
        return LinuxClass(text, NUMBERS[name], priority=_priority(text, parameter))
    if name == "SCHED_DEADLINE":
        return _deadline(text, parameter)
    if name == "SCHED_IDLE":
        if parameter:
            raise UsageError(f"{text}: SCHED_IDLE has no parameter; leave out ':{parameter}'")
        return LinuxClass(text, NUMBERS[name])
    nice, slash, slice_text = parameter.partition("/")
    if not slash and nice[:1].isdecimal() and nice[-1:].isalpha():
        nice, slice_text = "", nice
    slice_ns = _slice(text, slice_text) if slash or slice_text else 0
    return LinuxClass(text, NUMBERS[name], nice=_nice(text, nice), slice_ns=slice_ns)


def _priority(text: str, parameter: str) -> int:
    """Of a real-time class."""
    if not parameter:
        raise UsageError(f"{text}: it needs a priority, such as {text.rstrip(':')}:10")
    try:
        value = int(parameter)
    except ValueError:
        raise UsageError(f"{text}: '{parameter}' is no priority; write {text.partition(':')[0]}:10") from None
    if not 1 <= value <= PRIORITY_MAX:
        raise UsageError(
            f"{text}: the priority must be 1 to {PRIORITY_MAX}, since 99 is the "
            "watchdog's that ends a command"
        )
    return value


def _nice(text: str, parameter: str) -> int:
    """Of a fair class; ours where it is not given, as for any command, and since going below needs a capability."""
    if not parameter:
        return os.getpriority(os.PRIO_PROCESS, 0)
    try:
        value = int(parameter)
    except ValueError:
        raise UsageError(f"{text}: '{parameter}' is no nice value; write a number from -20 to 19") from None
    if not -20 <= value <= 19:
        raise UsageError(f"{text}: the nice value must be -20 to 19")
    return value


def _slice(text: str, given: str) -> int:
    """Of a fair class."""
    slice_ns = parse_duration(given, place=text)
    if not SLICE_MIN_NS <= slice_ns <= SLICE_MAX_NS:
        raise UsageError(f"{text}: Linux takes slices from 0.1 to 100 ms; write one, such as 3ms")
    return slice_ns


def _deadline(text: str, parameter: str) -> LinuxClass:
    """Runtime, deadline and period."""
    parts = parameter.split("/")
    if len(parts) != 3:
        raise UsageError(f"{text}: it needs runtime/deadline/period, such as SCHED_DEADLINE:5ms/10ms/10ms")
    runtime_ns, deadline_ns, period_ns = (parse_duration(part, place=text) for part in parts)
    if not RUNTIME_MIN_NS <= runtime_ns <= deadline_ns <= period_ns:
        raise UsageError(f"{text}: it must be {RUNTIME_MIN_NS} ns <= runtime <= deadline <= period")
    return LinuxClass(
        text, NUMBERS["SCHED_DEADLINE"], runtime_ns=runtime_ns, deadline_ns=deadline_ns, period_ns=period_ns
    )


def class_as_policy(linux_class: LinuxClass) -> BuiltPolicy:
    """Make of a class what a host is handed as a policy; there is nothing to compile."""
    digest = hashlib.sha256(f"{linux_class.name} {sorted(linux_class.settings.items())}".encode()).hexdigest()
    policy = Policy(
        name=linux_class.name,
        path=CLASS_FILE,
        summary=f"Linux's own class {linux_class.name}.",
        # CPUs balance each other in their own time, which is no promise.
        knobs={},
        work_conserving=False,
        work_conserving_reason="Linux balances CPUs now and then",
        source_text="sched(7)",
        content_hash=digest,
    )
    return BuiltPolicy(policy, Path(), linux_class.settings, digest)
