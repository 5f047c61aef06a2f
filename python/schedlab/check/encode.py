# SPDX-License-Identifier: MIT
"""Write a world as a program, without its way through TOML: in microseconds, not in a millisecond.

        World -> encode() -> bytes = compile_workload(parse_workload(to_toml(world))).data

Invariant: what is written is that, byte for byte; a world for which that is not
certain is not written here.
Read next: program/compiler.py.
"""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np

from ..program import layout
from ..program.compiler import compile_workload
from ..workload.events import OF_CPU
from ..workload.model import NO_QUOTA
from ..workload.phases import ATTRIBUTES
from ..workload.spec import parse_workload
from ..workload.tables import PipeTable
from .world import Group, Phase, World, to_toml


def _rows(dtype: np.dtype) -> struct.Struct:
    """Pack rows of a table of numbers: a row at a time it is quicker than numpy."""
    codes = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i4": "i", "S8": "8s"}
    return struct.Struct("<" + "".join(codes[dtype[name].str[1:]] for name in dtype.names or ()))


_HEADER, _TASK, _OP, _OBJECT = map(
    _rows, (layout.HEADER_DTYPE, layout.TASK_DTYPE, layout.OP_DTYPE, layout.OBJECT_DTYPE)
)
_VERB = layout.VERB_NUMBER
_EXIT = _OP.pack(_VERB["exit"], 0, 0, 0, 0)
#: What a pipe holds, where its workload does not say.
PIPE_BYTES = PipeTable.model_fields["capacity"].default
_WORD = struct.Struct("<Q")
#: In which order a task's row has the attributes that worlds have, and their defaults.
_FIELDS = {"deadline": 0, "burst": 0, "priority": 0, "tickets": 0, "credits": 0, "group": 0, "weight": 100}


class _Writer:
    """The tables of one program."""

    def __init__(self, world: World):
        self.world = world
        self.cgroups = world.cgroups
        self.names_of_cgroups = [each.name for each in self.cgroups]
        self.has_cpusets = any(each.cpus for each in self.cgroups)
        self.strings = bytearray(b"world\0")
        self.tasks: list[bytes] = []
        self.ops: list[bytes] = []
        self.values: list[int] = []
        self.objects: dict[str, int] = {}
        self.n_cpus_min = max((event.which + 1 for event in world.events if event.kind in OF_CPU), default=0)
        #: First task of each group, and how many have its name.
        self.changed: list[tuple[int, int]] = []

    def string(self, text: str) -> int:
        """Add a text, of which there is only this one; return its place."""
        offset = len(self.strings)
        self.strings += text.encode() + b"\0"
        return offset

    def group_number(self, name: str) -> int:
        """One more than its object; 0 for the root."""
        return len(self.objects) + self.names_of_cgroups.index(name) + 1 if name else 0

    def row(self, group: Group, *, name: str, class_idx: int, n_ops: int, parents: list[int] | None = None,
            each_has_own: bool = False) -> None:  # fmt: skip
        """Add the tasks of a class, whose ops come next."""
        given, fields = 0, dict(_FIELDS)
        affinity, n_words, arrival_ns = layout.NONE, 0, group.arrival_ns
        if parents is None:
            for key, value in group.attributes:
                fields[key] = value
                given |= 1 << ATTRIBUTES[key][0]
            if group.affinity:
                affinity, n_words = self.mask(group.affinity), 1
        else:
            arrival_ns = layout.ARRIVAL_SPAWNED
        place, first = self.string(name), len(self.ops)
        for number in range(group.count if parents is None else len(parents)):
            self.tasks.append(
                _TASK.pack(
                    arrival_ns, fields["deadline"], fields["burst"], place, class_idx,
                    layout.NONE if parents is None else parents[number],
                    first + number * n_ops * each_has_own, n_ops, affinity, n_words, given,
                    0, fields["priority"], fields["tickets"], fields["credits"], 0, fields["group"],
                    fields["weight"], self.group_number(group.cgroup) if parents is None else 0,
                )
            )  # fmt: skip

    def mask(self, cpus: tuple[int, ...]) -> int:
        """Add a mask; return its place."""
        self.values.append(sum(1 << cpu for cpu in set(cpus)))
        self.n_cpus_min = max(self.n_cpus_min, max(cpus) + 1)
        return len(self.values) - 1

    def op(self, verb: str, *, slot: int = 0, a: int = 0, b: int = 0) -> None:
        """Add an op."""
        self.ops.append(_OP.pack(_VERB[verb], 0, slot, a, b))

    def phase(self, phase: Phase) -> None:
        """Add the ops of a phase."""
        if phase.verb == "locked":
            lock = self.objects["m"]
            self.op("lock", a=lock)
            self.op("run", b=phase.time_ns)
            self.op("unlock", a=lock)
        elif phase.verb == "change":
            first, count = (
                self.changed[phase.target % len(self.changed)] if phase.target >= 0 else (layout.NONE, 1)
            )
            if phase.name == "affinity":
                slot, value = layout.CHANGE_AFFINITY, self.mask(self.world.cpus_of(phase)) << 32 | 1
            else:
                slot, value = ATTRIBUTES[phase.name][0], phase.value
            for number in range(count):
                self.op("change", slot=slot, a=first + number, b=value)
        elif phase.verb == "join":
            self.op("join", a=self.group_number(phase.name) - 1)
        elif phase.verb == "set":
            self.op("set", a=ATTRIBUTES[phase.name][0], b=phase.value)
        else:
            self.op(phase.verb, b=phase.time_ns)

    def n_ops(self, phase: Phase) -> int:
        """How many ops a phase is."""
        if phase.verb == "change" and phase.target >= 0:
            return self.changed[phase.target % len(self.changed)][1]
        return 3 if phase.verb == "locked" else 1

    def rows_of_cgroups(self) -> bytes:
        """The objects of cgroups, each with its values."""
        rows = []
        for each in self.cgroups:
            quota_us = each.quota_ns // 1000 if each.quota_ns else NO_QUOTA
            values = [self.group_number(each.parent), each.weight, each.period_ns // 1000, quota_us]
            if self.has_cpusets:
                values.append(self.mask(each.cpus) << 32 | 1 if each.cpus else 0)
            rows.append(_OBJECT.pack(layout.OBJECT_NUMBER["group"], self.string(each.name), len(self.values)))
            self.values += values
        return b"".join(rows)

    def data(self) -> bytes:
        """The program."""
        cgroups = self.rows_of_cgroups()
        version = layout.version_of(has_groups=bool(cgroups), has_cpusets=self.has_cpusets)
        parts = [
            b"".join(self.tasks), b"".join(self.ops),
            b"".join(_OBJECT.pack(kind, self.string(name), kind == layout.OBJECT_NUMBER["pipe"] and PIPE_BYTES)
                     for name, kind in self.objects_in_order()) + cgroups,
            b"".join(map(_WORD.pack, self.values)),
        ]  # fmt: skip
        offsets = [_HEADER.size]
        for part in parts:
            offsets.append(offsets[-1] + len(part))
        return (
            _HEADER.pack(
                layout.MAGIC, version, _HEADER.size, offsets[-1] + len(self.strings), self.world.seed,
                self.world.horizon_ns, len(self.tasks), len(self.ops), len(self.objects) + len(self.cgroups), len(self.values),
                len(self.strings), self.n_cpus_min, *offsets, 0, 0,
            )
            + b"".join(parts)
            + self.strings
        )  # fmt: skip

    def objects_in_order(self) -> list[tuple[str, int]]:
        """Names and kinds."""
        kinds = layout.OBJECT_NUMBER
        return [(name, kinds["lock" if name == "m" else "pipe"]) for name in self.objects]


def encode(world: World) -> bytes | None:
    """Write a world as a program; None: it has to go the long way."""
    if world.given or not world.horizon_ns or not all(map(_takes_time, world.groups)):
        return None
    writer = _Writer(world)
    names = [chr(ord("a") + number) for number in range(len(world.groups))]
    writer.objects = {name: number for number, name in enumerate(world.objects)}
    return _write(writer, world, names)


def program_of(world: World) -> bytes:
    """The program of a world; SpecError where it has none."""
    data = encode(world)
    if data is not None:
        return data
    workload = world.given or parse_workload(to_toml(world), name="world.toml")
    if world.horizon_ns:
        workload = replace(workload, horizon_ns=world.horizon_ns)
    return compile_workload(workload, seed=world.seed).data


def _takes_time(group: Group) -> bool:
    """Whether each round of a group's tasks takes some, so that the workload is surely a valid one."""
    return any(phase.verb in ("run", "locked", "sleep") and phase.time_ns for phase in group.phases)


def _write(writer: _Writer, world: World, names: list[str]) -> bytes:
    """Those that arrive, then their children."""
    class_idx, first, forkers = 0, 0, []
    n_first = world.n_tasks
    for group in world.groups:
        writer.changed.append((first, group.count))
        first += group.count * (2 if group.role == "pair" else 1)
    first = 0
    for name, group in zip(names, world.groups, strict=True):
        is_loop = group.rounds != 1
        n_steps = sum(map(writer.n_ops, group.phases))
        if group.role == "pair":
            for half in (1, 2):
                writer.row(
                    group, name=f"{name}-{half}", class_idx=class_idx, n_ops=n_steps + 2 + 2 * is_loop + 1
                )
                _body(writer, group, n_steps + 2, pipe=name, half=half)
                class_idx, first = class_idx + 1, first + group.count
        elif group.role == "forker":
            n_inside = n_steps + 1 + group.is_awaited
            n_ops = n_inside + 2 * is_loop + 1
            writer.row(group, name=name, class_idx=class_idx, n_ops=n_ops, each_has_own=group.count > 1)
            for number in range(group.count):
                _body(writer, group, n_inside, children=n_first + number * group.rounds)
            forkers.append((name, group, first, class_idx + 1))
            n_first += group.count * group.rounds
            class_idx, first = class_idx + 2, first + group.count
        else:
            writer.row(group, name=name, class_idx=class_idx, n_ops=n_steps + 2 * is_loop + 1)
            _body(writer, group, n_steps)
            class_idx, first = class_idx + 1, first + group.count
    for name, group, parent, idx in forkers:
        parents = [parent + number for number in range(group.count) for _ in range(group.rounds)]
        writer.row(group, name=f"{name}-child", class_idx=idx, n_ops=2, parents=parents)
        writer.op("run", b=group.child_ns)
        writer.ops.append(_EXIT)
    return writer.data()


def _body(
    writer: _Writer, group: Group, n_inside: int, *, pipe: str = "", half: int = 0, children: int = -1
) -> None:
    """The ops of a task: its loop, what its role adds, its phases, the end."""
    is_loop = group.rounds != 1
    if is_loop:
        writer.op("loop", a=n_inside + 1, b=group.rounds)
    if half == 2:
        writer.op("recv", a=writer.objects[f"{pipe}-there"], b=1)
    if children >= 0:
        writer.op("spawn", slot=int(is_loop), a=children, b=group.rounds)
    for phase in group.phases:
        writer.phase(phase)
    if half:
        writer.op("send", a=writer.objects[f"{pipe}-{('there', 'back')[half - 1]}"], b=1)
    if half == 1:
        writer.op("recv", a=writer.objects[f"{pipe}-back"], b=1)
    if children >= 0 and group.is_awaited:
        writer.op("wait")
    if is_loop:
        writer.op("end")
    writer.ops.append(_EXIT)
