# SPDX-License-Identifier: MIT
"""Write a workload as a file of rt-app, so that it can be run by that tool.

Works from the program, in which all is drawn: each group of tasks that do exactly
the same becomes one task of rt-app. Two levels of loops become its two (`loop` of
a task and of a phase); deeper ones, and loops whose values differ from round to
round, are written out. What rt-app 1.0 cannot do is refused with the reason; what
only loses precision, or an attribute that it has no word for, is a note.

Read next: workload/rtapp.py, the way back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..calibration import DEFAULT_CALIBRATION, WORK_KERNELS, Calibration
from ..errors import SpecError, SpecFault, UsageError, did_you_mean
from ..workload.model import Converted, Workload
from ..workload.phases import ATTRIBUTES
from ..workload.rtapp_events import US_MAX
from . import layout
from .compiler import compile_workload
from .file import Program

#: rt-app makes a thread for each task at the start.
THREADS_MAX = 4096
#: Events of one task, loops written out; its parser keeps a structure for each.
EVENTS_MAX = 10_000
POLICIES = ("SCHED_OTHER", "SCHED_FIFO", "SCHED_RR")
_RT_PRIORITY_MAX = 99
_KEY_WEIGHT, _KEY_PRIORITY = ATTRIBUTES["weight"][0], ATTRIBUTES["priority"][0]
_WITHOUT_WORD = {number: name for name, (number, *_) in ATTRIBUTES.items() if name != "nice"}


@dataclass(frozen=True)
class _Loop:
    """A loop of a task: 0 rounds are for ever."""

    rounds: int
    body: tuple[Any, ...]


@dataclass(frozen=True)
class _Step:
    """One op, with its operand drawn: a list where every round has its own."""

    verb: str
    a: int
    b: int
    flags: int
    slot: int
    table: tuple[int, ...] = ()


@dataclass
class _Phase:
    """A phase of rt-app."""

    loop: int = 1
    events: list[tuple[str, object]] = field(default_factory=list)
    priority: int | None = None


def export_rtapp(
    workload: Workload,
    *,
    seed: int = 0,
    policy: str = "SCHED_OTHER",
    calibration: Calibration = DEFAULT_CALIBRATION,
) -> Converted:
    """Write a workload as a file of rt-app.

    >>> from schedlab.workload.find import load_workload
    >>> export_rtapp(load_workload("textbook/rr")).text.splitlines()[2]
    '\\t\\t"A" : {'
    """
    if policy not in POLICIES:
        raise UsageError(f"unknown policy {policy!r}{did_you_mean(policy, POLICIES)}")
    exporter = _Exporter(workload, compile_workload(workload, seed=seed), policy, calibration)
    return exporter.file()


class _Exporter:
    """Collects tasks, faults and notes of one export."""

    def __init__(self, workload: Workload, program: Program, policy: str, calibration: Calibration):
        self.workload = workload
        self.program = program
        self.policy = policy
        self.calibration = calibration
        self.faults: dict[str, SpecFault] = {}
        self.notes: dict[str, None] = {}
        self.chunks: set[int] = set()
        self.parties: dict[int, int] = {}
        self.suspended = {
            int(op["a"]) for op in program.ops if layout.VERBS[op["verb"]] == "await" and not op["b"]
        }
        self.decoded: dict[tuple[int, int], tuple[Any, ...]] = {}

    def fault(self, name: str, message: str) -> None:
        fault = SpecFault(self.workload.name, None, f"task {name!r}" if name else "", message)
        self.faults.setdefault(str(fault), fault)

    def file(self) -> Converted:
        rows = self.program.task_rows
        if len(rows) > THREADS_MAX:
            self.fault("", f"{len(rows)} tasks: rt-app starts a thread for each, {THREADS_MAX} here at most")
        else:
            tasks = self.tasks()
            self.check_barriers()
        if self.program.has_groups:
            kept = ", but for the CPUs that their tasks have" if self.program.has_cpusets else ""
            self.notes[f"groups: left out{kept}"] = None
        settings = self.settings()
        if self.faults:
            raise SpecError(list(self.faults.values()))
        return Converted(_as_json({"tasks": tasks, "global": settings}), tuple(self.notes))

    def settings(self) -> dict[str, object]:
        """Fill in `global`: quiet, and the same whatever rt-app's defaults are."""
        duration = -1
        horizon_ns = self.workload.horizon_ns
        if horizon_ns:
            duration = -(-horizon_ns // 10**9)
            if horizon_ns % 10**9:
                self.notes[f"the horizon is rounded up to {duration} s"] = None
        found: dict[str, object] = {
            "duration": duration,
            "calibration": "CPU0",
            "default_policy": self.policy,
            "pi_enabled": False,
            "lock_pages": False,
            "log_size": "disable",
            "ftrace": False,
            "gnuplot": False,
        }
        if self.chunks:
            found["mem_buffer_size"] = max(self.chunks)
            if len(self.chunks) > 1:
                self.notes[f"iorun: calls of {max(self.chunks)} bytes for all"] = None
        return found

    # ---- tasks -------------------------------------------------------------

    def tasks(self) -> dict[str, dict[str, Any]]:
        """Group tasks that are alike, and write one of each."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for index, row in enumerate(self.program.task_rows):
            if row["parent"] != layout.NONE:
                continue  # its parent's spawn is refused
            groups.setdefault(self.identity(index), []).append(index)
        found: dict[str, dict[str, Any]] = {}
        for members in groups.values():
            row = self.program.task_rows[members[0]]
            name = own = self.program.string(int(row["name"]))
            number = 1
            while own in found:
                number += 1
                own = f"{name}-{number}"
            found[own] = self.task(name, members[0], len(members))
        return found

    def identity(self, index: int) -> tuple[Any, ...]:
        """All that tells one task of rt-app from another."""
        row = self.program.task_rows[index]
        fields = [row[key].tobytes() for key in row.dtype.fields or () if key not in ("op_first", "affinity")]
        return (*fields, self.program.cpus_of(index), self.tree(row))

    def task(self, name: str, index: int, instances: int) -> dict[str, object]:
        row = self.program.task_rows[index]
        table: dict[str, object] = {}
        if instances > 1:
            table["instance"] = instances
        delay_us = self.microseconds(name, "arrival", int(row["arrival_ns"]))
        if delay_us:
            table["delay"] = delay_us
        table |= self.attributes(name, row)
        if cpus := self.program.cpus_of(index):
            table["cpus"] = list(cpus)
        loop, phases = self.phases(name, self.tree(row), instances)
        if not any(phase.events for phase in phases):
            phases = [_Phase(events=[("run", 0)])]  # rt-app refuses a task that does nothing
        table["loop"] = loop
        table["phases"] = {
            f"phase{number}": _phase_table(phase) for number, phase in enumerate(phases) if phase.events
        }
        # Always with phases: without them, rt-app 1.0 takes any `loop` for -1.
        return table

    def attributes(self, name: str, row: np.void) -> dict[str, object]:
        """Nice or a real-time priority; the others have no word in rt-app."""
        given = [key for key in range(8) if int(row["attr_given"]) >> key & 1]
        known = {_KEY_WEIGHT} if self.policy == "SCHED_OTHER" else {_KEY_PRIORITY}
        for key in given:
            if key not in known:
                self.notes[f"{_WITHOUT_WORD[key]} of {name}: left out"] = None
        if self.policy != "SCHED_OTHER":
            return {"priority": self.level(name, int(row["priority"]) if _KEY_PRIORITY in given else None)}
        if _KEY_WEIGHT not in given:
            return {}
        return {"priority": self.nice(name, int(row["weight"]))}

    def level(self, name: str, priority: int | None) -> int:
        if priority is None:
            self.fault(name, f"it has no priority, which {self.policy} needs")
            return 1
        if not 0 <= priority < _RT_PRIORITY_MAX:
            self.fault(name, f"priority {priority}: real-time levels are 0, the highest, to 98")
            return 1
        return _RT_PRIORITY_MAX - priority

    def nice(self, name: str, weight: int) -> int:
        """Nearest nice value of a weight."""
        best = min(range(-20, 20), key=lambda nice: (abs(layout.weight_of_nice(nice) - weight), abs(nice)))
        if layout.weight_of_nice(best) != weight:
            self.notes[f"weight {weight} of {name}: nice {best}, {layout.weight_of_nice(best)}"] = None
        return best

    # ---- ops ---------------------------------------------------------------

    def tree(self, row: np.void) -> tuple[Any, ...]:
        """Ops of a task as steps and loops inside each other."""
        key = (int(row["op_first"]), int(row["nr_ops"]))
        if key not in self.decoded:
            ops = self.program.ops[key[0] : key[0] + key[1]]
            self.decoded[key] = tuple(self.block(iter(ops)))
        return self.decoded[key]

    def block(self, ops: Iterator[np.void]) -> Iterator[_Step | _Loop]:
        for op in ops:
            verb = layout.VERBS[op["verb"]]
            if verb in ("end", "exit"):
                return
            if verb == "loop":
                yield _Loop(int(op["b"]), tuple(self.block(ops)))
                continue
            b, table = int(op["b"]), ()
            if op["flags"] & layout.OP_TABLE:
                first, number = b >> 32, b & layout.NONE
                table = tuple(self.program.values[first : first + number].tolist())
            yield _Step(verb, int(op["a"]), b, int(op["flags"]) & ~layout.OP_TABLE, int(op["slot"]), table)

    def phases(self, name: str, tree: tuple[Any, ...], instances: int) -> tuple[int, list[_Phase]]:
        """Fit loops into rt-app's two levels; write out the rest."""
        loop, body = 1, tree
        if len(tree) == 1 and isinstance(tree[0], _Loop) and not _has_tables(tree[0].body):
            inner = tree[0]
            if any(isinstance(item, _Loop) or item.verb == "set" for item in inner.body):
                loop, body = inner.rounds or -1, inner.body
        phases = [_Phase()]
        for item in body:
            if isinstance(item, _Loop) and not _has_tables(item.body) and not _sets(item.body):
                events = self.events(name, self.flat(name, item.body), instances)
                phases += [_Phase(item.rounds or -1, events), _Phase()]
                continue
            for step in self.flat(name, (item,)):
                if step.verb == "set":
                    phases.append(_Phase(priority=self.change(name, step)))
                else:
                    phases[-1].events += self.events(name, [step], instances)
        return loop, self.with_priorities(phases)

    def with_priorities(self, phases: list[_Phase]) -> list[_Phase]:
        """Give the priority that a set made to the next phase that has events."""
        wanted, found = None, []
        for phase in phases:
            wanted = phase.priority if phase.priority is not None else wanted
            if phase.events:
                found.append(replace(phase, priority=wanted))
                wanted = None
        if wanted is not None:
            found.append(_Phase(events=[("run", 0)], priority=wanted))
        return found

    def change(self, name: str, step: _Step) -> int | None:
        if step.a == _KEY_WEIGHT and self.policy == "SCHED_OTHER":
            return self.nice(name, step.b)
        if step.a == _KEY_PRIORITY and self.policy != "SCHED_OTHER":
            return self.level(name, step.b if step.b < 2**31 else step.b - 2**32)
        self.notes[f"set {_WITHOUT_WORD[step.a]} of {name}: left out"] = None
        return None

    def flat(self, name: str, items: tuple[Any, ...]) -> list[_Step]:
        """Write out loops, each round with its own values."""
        steps: list[_Step] = []
        used: dict[int, int] = {}
        self.unroll(name, items, steps, used)
        return steps

    def unroll(self, name: str, items: tuple[Any, ...], steps: list[_Step], used: dict[int, int]) -> None:
        for item in items:
            if len(steps) > EVENTS_MAX:
                return
            if isinstance(item, _Step):
                if item.table:
                    number = used.get(item.slot, 0)
                    used[item.slot] = number + 1
                    item = replace(item, b=item.table[number % len(item.table)], table=(), slot=0)
                steps.append(item)
                continue
            if not item.rounds:
                self.fault(
                    name,
                    "an endless loop inside another, or with drawn values: rt-app has two "
                    "levels of loops and draws nothing",
                )
                return
            for _ in range(item.rounds):
                self.unroll(name, item.body, steps, used)
                if len(steps) > EVENTS_MAX:
                    self.fault(
                        name,
                        f"more than {EVENTS_MAX} events when its inner loops are written "
                        "out: rt-app has two levels of loops and draws nothing",
                    )
                    return

    def microseconds(self, name: str, what: str, time_ns: int) -> int:
        time_us = (time_ns + 500) // 1000
        if time_ns % 1000:
            self.notes[f"{what} of {name}: rounded to microseconds"] = None
        if time_us > US_MAX:
            self.fault(name, f"{what}: {time_us} us are more than rt-app's {US_MAX}")
        return min(time_us, US_MAX)

    def events(self, name: str, steps: list[_Step], instances: int) -> list[tuple[str, object]]:
        """Turn steps into events."""
        found: list[tuple[str, object]] = []
        for step in steps:
            found += self.event(name, step, instances)
        return found

    def event(self, name: str, step: _Step, instances: int) -> list[tuple[str, object]]:
        """Turn one step into events, mostly one."""
        if step.verb in ("run", "sleep"):
            return [(step.verb, self.microseconds(name, step.verb, step.b))]
        if step.verb == "work":
            kernel = WORK_KERNELS[step.a]
            self.notes[f"work of {name}: as CPU time, {self.calibration.unit_ps(kernel)} ps a unit"] = None
            return [("run", self.microseconds(name, "work", self.calibration.work_ns(kernel, step.b)))]
        if step.verb == "yield":
            return [("yield", "")]
        if step.verb == "write":
            return self.output(name, step)
        if step.verb == "timer":
            value = {"ref": f"unique{step.slot}", "period": self.microseconds(name, "timer", step.b)}
            return [("timer", value | ({"mode": "absolute"} if step.a else {}))]
        if step.verb in ("lock", "unlock", "barrier"):
            if step.verb == "barrier":
                self.parties[step.a] = self.parties.get(step.a, 0) + instances
            return [(step.verb, self.object_name(step.a))]
        if step.verb == "await" and step.b:
            return [("wait", {"ref": self.object_name(step.a), "mutex": self.object_name(step.b - 1)})]
        if step.verb == "await":
            return [("suspend", self.object_name(step.a))]
        if step.verb == "signal":
            to_all = "resume" if step.a in self.suspended else "broad"
            return [(to_all if step.b else "signal", self.object_name(step.a))]
        self.fault(name, f"{step.verb}: {_NO_EVENT[step.verb]}")
        return []

    def output(self, name: str, step: _Step) -> list[tuple[str, object]]:
        if step.flags:
            self.fault(name, "write: rt-app's iorun cannot wait for a device; leave out sync and direct")
        if step.b > US_MAX:
            self.fault(name, f"write: {step.b} bytes are more than rt-app's {US_MAX}")
        self.chunks.add(min(step.a, max(step.b, 1), US_MAX))
        return [("iorun", min(step.b, US_MAX))]

    def object_name(self, index: int) -> str:
        return self.program.string(int(self.program.objects[index]["name"]))

    def check_barriers(self) -> None:
        """rt-app counts a party for each thread and each place that names a barrier."""
        for index, parties in self.parties.items():
            wanted = int(self.program.objects[index]["param"])
            if wanted != parties:
                self.fault(
                    "",
                    f"barrier {self.object_name(index)!r}: {wanted} parties, but rt-app would "
                    f"count {parties}, one for each thread and each place that names it",
                )


_NO_EVENT = {
    "period": "rt-app has only timers, which do not skip what they are late for; write a timer",
    "read": "rt-app only writes",
    "send": "rt-app has no pipes",
    "recv": "rt-app has no pipes",
    "spawn": "rt-app 1.0 starts all tasks at once; give the child an arrival of its own",
    "wait": "rt-app 1.0 has no children to wait for",
    "join": "its task groups do not change",
    "change": "no rt-app thread changes another one, or its CPUs within a phase",
    "set": "inside a loop within loops, where rt-app changes nothing",
}


def _has_tables(items: tuple[Any, ...]) -> bool:
    return any(_has_tables(item.body) if isinstance(item, _Loop) else bool(item.table) for item in items)


def _sets(items: tuple[Any, ...]) -> bool:
    return any(_sets(i.body) if isinstance(i, _Loop) else i.verb == "set" for i in items)


def _phase_table(phase: _Phase) -> dict[str, object]:
    """Number the events: rt-app keeps only the last of equal keys."""
    table: dict[str, object] = {} if phase.loop == 1 else {"loop": phase.loop}
    if phase.priority is not None:
        table["priority"] = phase.priority
    return table | {f"{event}{i}": value for i, (event, value) in enumerate(phase.events)}


def _as_json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent="\t", separators=(",", " : ")) + "\n"
