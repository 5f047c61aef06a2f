# SPDX-License-Identifier: MIT
"""Whether urgent tasks came first: the property of policies that declare `@priority ATTRIBUTE within KNOB`.

A task that waits is behind while a less urgent one runs on a CPU that it may use; with `when free`, it is behind where such
a CPU takes a less urgent one. `burst` is what a task has left of it; `queued`, when it was: the sooner, the more urgent. One that waits for a lock is behind,
too, while the lock's holder, less urgent than it, waits for a CPU that a less urgent one has: priority inversion.

How urgent a task is whose attribute or mask changes in the run, or that has no such attribute, is not known: it is
left out; so is a task that has outlived its burst, or has yielded before its end. Lock holders are known of tasks that do nothing but take a lock, compute, let it go, and compute or sleep:
the CPU time that one has had is its place there, and a lock goes to the task that has waited longest.
Read next: promises.py, the caller; hosts/check/promises.c, which does the first of the two sums for each world.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..program import layout
from ..program.file import Program
from ..records.file import Kind, Records, Stop
from ..units import format_duration
from ..workload.phases import ATTRIBUTES

_VERB = layout.VERB_NUMBER
#: Of a task without deadline: after all others.
LAST = 1 << 62


@dataclass(frozen=True)
class Order:
    """Which task goes before which, as a header declares it."""

    attribute: str
    when_free: bool = False
    then_queued: bool = False


@dataclass
class _Place:
    """Where a task is that takes a lock in each of its rounds; times are its CPU time."""

    lock: int  #: Its object.
    section_ns: int  #: For how long it has the lock.
    round_ns: int
    does_sleep: bool  #: Between rounds; it blocks there before it blocks at the lock.
    ran_ns: int = 0
    has_slept: bool = True
    is_at_lock: bool = False
    was_given: bool = False  #: It has the lock, and has not run since.

    @property
    def holds(self) -> bool:
        """Whether it has the lock, where it waits for a CPU."""
        return self.was_given or 0 < self.ran_ns % self.round_ns < self.section_ns

    def stop(self, ran_ns: int, is_blocked: bool) -> None:
        """It stops after so much CPU time."""
        self.ran_ns += ran_ns
        if ran_ns:
            self.was_given, self.has_slept = False, not self.does_sleep
        self.is_at_lock = is_blocked and self.has_slept
        if is_blocked:
            self.has_slept = True


@dataclass
class _Rival:
    """A task whose urgency is known."""

    name: str
    value: int  #: Of the attribute.
    rank: int | None  #: The smaller, the more urgent; None: not known.
    cpus: frozenset[int]
    is_ready: bool = False
    behind_ns: int | None = None  #: Less urgent ones have run since then.
    #: When it was queued, if it was so at a tail; None: not known.
    queued_ns: int | None = None
    since_ns: int = 0  #: It has been ready, or has run, since then.
    place: _Place | None = None


def rivals_of(program: Program, order: Order, n_cpus: int) -> dict[int, _Rival]:
    """The tasks whose urgency is known, by pid."""
    attribute, ops, rows = order.attribute, program.ops, program.task_rows
    # A change of another task may queue it anew, whatever is changed.
    is_queued = attribute == "queued" or order.then_queued
    key = -1 if attribute == "queued" else ATTRIBUTES[attribute][0]
    changed = {pid for pid, changes in enumerate(program.has_mask_changed.tolist(), 1) if changes}
    rivals: dict[int, _Rival] = {}
    taken_otherwise: set[int] = set()
    for pid, row in enumerate(rows, 1):
        own = ops[row["op_first"] : row["op_first"] + row["nr_ops"]]
        changes = own[(own["verb"] == _VERB["change"]) & ((own["slot"] == key) | is_queued)]["a"].tolist()
        changed |= {pid if other == layout.NONE else other + 1 for other in changes}
        if ((own["verb"] == _VERB["set"]) & (own["a"] == key)).any():
            changed.add(pid)
        is_given = attribute in ("deadline", "queued") or row["attr_given"] >> key & 1
        if is_given:
            member = {"deadline": "deadline_ns", "burst": "burst_ns", "queued": "arrival_ns"}
            value = int(row[member.get(attribute, attribute)])
            cpus = program.cpus_of(pid - 1)
            name = program.string(int(row["name"]))
            rivals[pid] = _Rival(name, value, value, frozenset(range(n_cpus) if cpus is None else cpus))
            rivals[pid].place = _place_of(own)
        if not is_given or rivals[pid].place is None:
            taken_otherwise |= set(own[own["verb"] == _VERB["lock"]]["a"].tolist())
    for lock in taken_otherwise:
        # Who holds it is not known, nor what a task at it waits for.
        for rival in rivals.values():
            if rival.place and rival.place.lock == lock:
                rival.place = None
    return {pid: rival for pid, rival in rivals.items() if pid not in changed}


def _place_of(ops: np.ndarray) -> _Place | None:
    """What a task does with a lock, where it does nothing else."""
    steps = [op for op in ops if op["verb"] not in (_VERB["loop"], _VERB["end"], _VERB["exit"])]
    verbs = tuple(layout.VERBS[op["verb"]] for op in steps)
    is_plain = not any(op["flags"] for op in steps)
    if not is_plain or verbs[:3] != ("lock", "run", "unlock") or verbs[3:] not in (("run",), ("sleep",)):
        return None
    section_ns, rest_ns = int(steps[1]["b"]), int(steps[3]["b"])
    does_sleep = verbs[3] == "sleep"
    return _Place(int(steps[0]["a"]), section_ns, section_ns + (0 if does_sleep else rest_ns), does_sleep)


class _Machine:
    """What runs, and who is behind."""

    def __init__(self, rivals: dict[int, _Rival], order: Order):
        self.rivals = rivals
        self.order = order
        self.attribute = order.attribute
        self.running: dict[int, int] = {}  #: Of each CPU that is not idle, the pid.
        self.now_ns = 0

    def take(self, kind: int, pid: int, cpu: int, flags: int, ns: int) -> None:
        """An event happens."""
        rival = self.rivals.get(pid)
        if kind == Kind.RUN:
            self.running[cpu] = pid
        elif kind == Kind.STOP:
            self.running.pop(cpu, None)
        if rival is None:
            return
        if kind in (Kind.ARRIVE, Kind.WAKE):
            rival.is_ready, rival.since_ns = True, self.now_ns
            rival.queued_ns = self.now_ns
            if self.attribute == "deadline":
                rival.rank = self.now_ns + rival.value if rival.value else LAST
            elif self.attribute == "burst":
                rival.rank = rival.value or None
            elif self.attribute == "queued":
                rival.rank = self.now_ns
            if rival.place is not None:
                rival.place.was_given, rival.place.is_at_lock = rival.place.is_at_lock, False
        elif kind == Kind.RUN:
            rival.is_ready, rival.behind_ns, rival.since_ns = False, None, self.now_ns
        elif kind == Kind.STOP:
            rival.is_ready, rival.behind_ns = flags in (Stop.PREEMPTED, Stop.YIELDED), None
            rival.since_ns = self.now_ns
            # What a higher one has preempted is before its equals, what has used up its slice behind them.
            rival.queued_ns = None if flags == Stop.PREEMPTED else self.now_ns
            if self.attribute == "burst" and rival.rank is not None:
                rival.rank = rival.rank - ns if flags != Stop.YIELDED and ns < rival.rank else None
            elif self.attribute == "queued":
                rival.rank = self.now_ns
            if rival.place is not None:
                rival.place.stop(ns, flags == Stop.BLOCKED)

    def broken(self, until_ns: int, allowed_ns: int, *, through_locks: bool) -> str | None:
        """Until then nothing changes: which task is behind for longer than is allowed; None: none is."""
        holders = {
            r.place.lock: r
            for r in self.rivals.values()
            if through_locks and r.is_ready and r.place and r.place.holds
        }
        for pid, rival in self.rivals.items():
            waits = None if through_locks or not rival.is_ready else rival
            if through_locks and rival.place is not None and rival.place.is_at_lock:
                waits = holders.get(rival.place.lock)
            cpu = None
            if waits is not None and (waits is rival or self._is_before(rival, waits)):
                cpu = next((c for c in sorted(waits.cpus) if self._is_less_urgent(c, rival)), None)
            if cpu is None or waits is None:
                rival.behind_ns = None
                continue
            if rival.behind_ns is None:
                rival.behind_ns = self.now_ns
            if until_ns - rival.behind_ns > allowed_ns:
                return self._describe(pid, cpu, until_ns, allowed_ns, None if waits is rival else waits)
        return None

    def passed_over(self, pid: int, cpu: int, allowed_ns: int) -> str | None:
        """A CPU takes a task: which more urgent one has waited for it, longer than is allowed; None: none has."""
        taken = self.rivals.get(pid)
        for other, rival in self.rivals.items():
            waited_ns = self.now_ns - rival.since_ns if rival.is_ready and cpu in rival.cpus else 0
            if taken is not None and waited_ns > allowed_ns and self._is_before(rival, taken):
                since, at = format_duration(rival.since_ns), format_duration(self.now_ns)
                return f"{self._name(other)} had waited since {since} when {self._name(pid)} began to run on CPU {cpu} at {at}"
        return None

    def _is_before(self, one: _Rival, other: _Rival, ran_ns: int = 0) -> bool:
        """Whether one of two is more urgent, as far as that is known; `ran_ns`: of its burst the other had since."""
        if one.rank is None or other.rank is None or (ran_ns and ran_ns >= other.rank):
            return False
        if one.rank != other.rank - ran_ns or not self.order.then_queued:
            return one.rank < other.rank - ran_ns
        return one.queued_ns is not None and other.queued_ns is not None and one.queued_ns < other.queued_ns

    def _is_less_urgent(self, cpu: int, rival: _Rival) -> bool:
        """Whether what runs on a CPU is."""
        other = self.rivals.get(self.running.get(cpu, 0))
        if other is None:
            return False
        return self._is_before(rival, other, self.now_ns - other.since_ns if self.attribute == "burst" else 0)

    def _describe(self, pid: int, cpu: int, until_ns: int, allowed_ns: int, holder: _Rival | None) -> str:
        """Who was behind whom."""
        rival = self.rivals[pid]
        assert rival.behind_ns is not None
        longer = f"longer than {format_duration(allowed_ns)}" if allowed_ns else "and not run at once"
        times = f"from {format_duration(rival.behind_ns)} to {format_duration(until_ns)}"
        other = self._name(self.running[cpu])
        if holder is None:
            return f"{self._name(pid)} waited {times} while {other} ran on CPU {cpu}, {longer}"
        held_by = self._name(next(p for p, each in self.rivals.items() if each is holder))
        return (
            f"priority inversion: {self._name(pid)} waited for a lock {times}, "
            f"and its holder {held_by} for a CPU, while {other} ran on CPU {cpu}, {longer}"
        )

    def _name(self, pid: int) -> str:
        """A task with its attribute."""
        rival = self.rivals[pid]
        if self.attribute == "deadline":
            urgency = f"due at {format_duration(rival.rank or 0)}" if rival.value else "no deadline"
        elif self.attribute == "burst":
            urgency = f"burst {format_duration(rival.value)}"
        elif self.attribute == "queued":
            urgency = f"queued at {format_duration(rival.rank or 0)}"
        else:
            urgency = f"{self.attribute} {rival.value}"
        return f"{rival.name}[{pid}] ({urgency})"


def broken_priority(
    records: Records, program: Program, order: Order, allowed_ns: int, *, through_locks: bool = False
) -> str | None:
    """Which task was behind less urgent ones for longer than is allowed; None: none was.

    With `through_locks` those that wait for a lock are looked at, and no others.
    """
    machine = _Machine(rivals_of(program, order, records.n_cpus), order)
    rows = records.events[["t_ns", "kind", "task", "cpu", "flags", "arg"]].tolist()
    for t_ns, kind, pid, cpu, flags, arg in [*rows, (records.end_ns, Kind.END, 0, 0, 0, 0)]:
        if t_ns > machine.now_ns and not order.when_free:
            text = machine.broken(t_ns, allowed_ns, through_locks=through_locks)
            if text is not None:
                return text
        machine.now_ns = t_ns
        if order.when_free and kind == Kind.RUN:
            text = machine.passed_over(pid, cpu, allowed_ns)
            if text is not None:
                return text
        machine.take(kind, pid, cpu, flags, arg)
    return None
