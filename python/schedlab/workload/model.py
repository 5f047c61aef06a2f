# SPDX-License-Identifier: MIT
"""A workload after reading: what spec.py makes and program/compiler.py compiles.

Everything is plain data in base units (ns, bytes); nothing is drawn yet.

Read next: spec.py, which fills these in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..toml_file import Place
from .distributions import Distribution
from .events import Event
from .params import Param
from .phases import Phase

#: Quota of a group that has none.
NO_QUOTA = 2**64 - 1
OBJECT_KINDS = ("lock", "pipe", "barrier", "condition")


@dataclass(frozen=True)
class Arrival:
    """When the instances of a task class arrive."""

    times_ns: tuple[int, ...] = ()  #: One time for all instances, or one per instance; empty for the others.
    spread: Distribution | None = None  #: Each instance draws its own time, in ns.
    #: Time from one instance to the next, in ns; the first arrives one gap after `start_ns`.
    gap: Distribution | None = None
    start_ns: int = 0  #: Used with `gap`.
    is_spawned: bool = False  #: Started by a phase of another task.


@dataclass
class Task:
    """One `[[task]]`: a class of tasks that do the same."""

    name: str  #: Its name; also what tells its draws from those of other classes.
    class_idx: int  #: Position in the file, from 0.
    count: int  #: Instances in the whole workload.
    arrival: Arrival  #: When they arrive.
    attributes: dict[str, tuple[int, ...]]  #: Values by attribute; instance i has element ``i % len``.
    is_burst_from_run: bool  #: The burst hint of each instance is the length of its first `run`.
    affinity: tuple[int, ...]  #: CPUs it may use; empty means all.
    phases: tuple[Phase, ...]  #: What each instance does.
    parent: str = ""  #: The class that spawns it, or empty.
    group: str = ""  #: The `[[group]]` that it is in, or empty.
    at: Place = ()  #: Path in the file.


@dataclass(frozen=True)
class Group:
    """A `[[group]]`: a cgroup."""

    name: str  #: Unique among groups.
    parent: str  #: The group that it is in, which comes before it; empty: the root.
    weight: int  #: 1 to 10,000.
    #: `period_us`, `quota_us`: CPU time that its tasks may have in each period; `NO_QUOTA`: as they like.
    period_us: int
    quota_us: int
    cpus: tuple[int, ...] = ()  #: CPUs of its tasks; empty: its parent's.


@dataclass
class SyncObject:
    """A `[[lock]]`, `[[pipe]]`, `[[barrier]]` or `[[condition]]`."""

    kind: str  #: One of `OBJECT_KINDS`.
    name: str  #: Its name, unique among all objects.
    #: Capacity of a pipe in bytes; parties of a barrier, 0 until checks.py has counted who uses it; 0 for a
    #: lock or a condition.
    param: int
    at: Place = ()  #: Path in the file.


@dataclass(frozen=True)
class Expected:
    """A schedule worked out by hand, for tests and for students."""

    policy: str  #: Name of the policy it holds for.
    settings: Mapping[str, int]  #: Knobs of the policy, in base units.
    #: When each task class (of one instance) ends, on one CPU, seed 0 and without costs.
    finish_ns: Mapping[str, int]


@dataclass(frozen=True)
class Converted:
    """A workload as a file of another format."""

    text: str  #: Contents of the file.
    notes: tuple[str, ...] = ()  #: What it does not say, or says less exactly, for people.


@dataclass(frozen=True)
class Workload:
    """A whole workload, checked."""

    #: Name of its file below `workloads/`, without ``.toml``; of the params that differ from their default,
    #: those are appended: ``poisson:rho=0.9``.
    name: str
    #: `title`, `question`, `description`: One line for a table; what it answers; the rest.
    title: str = ""
    question: str = ""
    description: str = ""
    path: Path | None = None  #: The file.
    tick_ns: int = 10_000_000  #: Length of a tick it was written for, in ns.
    jitter_ns: int = 10_000_000  #: Start times are moved by less than this, in ns; 0 for seed 0.
    horizon_ns: int = 0  #: The run ends here, in ns; 0: when all tasks have ended.
    cpus: int = 1  #: CPUs it is meant for.
    cpus_min: int = 0  #: A run on fewer is refused; 0: any.
    #: What a machine in virtual time charges unless it is told, as of the recorded one; names of
    #: `model.COSTS`.
    costs: Mapping[str, int] = field(default_factory=dict)
    params: Mapping[str, Param] = field(default_factory=dict)  #: As declared and as set.
    tasks: tuple[Task, ...] = ()  #: In the order of the file.
    objects: tuple[SyncObject, ...] = ()  #: Locks, then pipes, barriers, conditions.
    groups: tuple[Group, ...] = ()  #: Cgroups, a parent before its children.
    events: tuple[Event, ...] = ()  #: What happens to the machine.
    #: How CPUs take turns within callbacks, see hosts/check/interleave.c; empty: they do not.
    interleaving: str = ""
    expected: tuple[Expected, ...] = ()  #: Known schedules.
    #: What it is compiled to, where that is known beforehand, as of a recorded run; empty: what its tasks
    #: say.
    program: bytes = b""
    #: Whether tasks that none spawns were there before, asleep, as in a recording of Linux: in the simulator
    #: their arrival is a wake-up.
    are_roots_woken: bool = False
    #: Of a `program`: by how much of itself each burst and sleep may vary with seeds above 1, 0 to below 1.
    vary_share: float = 0.0
    copies: int = 1  #: How often all of it is there at once, each with objects of its own.
    #: By how much the weight of tasks of a name is multiplied.
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def happens(self) -> str:
        """What of it only `schedlab run`, `check` and what they write know; empty: nothing."""
        words = ("events" if self.events else "", "an interleaving" if self.interleaving else "")
        return " and ".join(filter(None, words))

    @property
    def has_quotas(self) -> bool:
        """Whether a cgroup has a quota, or gets one."""
        return any(group.quota_us != NO_QUOTA for group in self.groups) or any(
            event.kind == "quota" for event in self.events
        )

    @property
    def n_tasks(self) -> int:
        """Number of task instances, spawned ones included."""
        return sum(task.count for task in self.tasks)
