# SPDX-License-Identifier: MIT
"""Workload programs written by hand, for tests that damage them.

Independent of `schedlab.program`: a fault there must not hide one in player/.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

NONE = 0xFFFFFFFF
SPAWNED = 0xFFFFFFFFFFFFFFFF
VERBS = [
    "exit",
    "run",
    "work",
    "sleep",
    "period",
    "read",
    "write",
    "yield",
    "lock",
    "unlock",
    "send",
    "recv",
    "barrier",
    "spawn",
    "wait",
    "set",
    "loop",
    "end",
    "await",
    "signal",
    "timer",
    "join",
    "change",
]
TABLE = 1
HEADER = struct.Struct("<8sIIQQQ6I5QII")
TASK = struct.Struct("<QQQ8IiiIiIIII")
OP = struct.Struct("<BBHIQ")
OBJECT = struct.Struct("<IIQ")


@dataclass
class Task:
    """One task; `ops` are (verb, a, b) or (verb, a, b, flags, slot)."""

    ops: list[tuple]
    arrival_ns: int = 0
    parent: int = NONE
    affinity: int = NONE
    affinity_words: int = 0
    attr_given: int = 0
    nice: int = 0
    weight: int = 100
    name: int = 0
    group_object: int = 0


@dataclass
class Program:
    """A program; `pack` lays it out as include/schedlab/program.h says."""

    tasks: list[Task]
    objects: list[tuple[int, int]] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    strings: bytes = b"test\0"
    version: int = 1

    def pack(self) -> bytes:
        """Bytes of the file, shape (total_bytes,)."""
        tasks, ops = b"", b""
        for task in self.tasks:
            first = len(ops) // OP.size
            for verb, a, b, *more in task.ops:
                flags, slot = more or (0, 0)
                number = VERBS.index(verb) if isinstance(verb, str) else verb
                ops += OP.pack(number, flags, slot, a, b)
            tasks += TASK.pack(
                task.arrival_ns,
                0,
                0,
                task.name,
                0,
                task.parent,
                first,
                len(task.ops),
                task.affinity,
                task.affinity_words,
                task.attr_given,
                task.nice,
                0,
                1,
                0,
                0,
                0,
                task.weight,
                task.group_object,
            )
        objects = b"".join(OBJECT.pack(kind, 0, param) for kind, param in self.objects)
        values = struct.pack(f"<{len(self.values)}Q", *self.values)
        parts = [tasks, ops, objects, values, self.strings]
        offsets, at = [], HEADER.size
        for part in parts:
            offsets.append(at)
            at += len(part)
        header = HEADER.pack(
            b"SLPROG\0\1",
            self.version,
            HEADER.size,
            at,
            0,
            0,
            len(self.tasks),
            len(ops) // OP.size,
            len(self.objects),
            len(self.values),
            len(self.strings),
            0,
            *offsets,
            0,
            0,
        )
        return header + b"".join(parts)


def every_verb() -> Program:
    """A sound program in which every verb, flag and object occurs."""
    parent = Task(
        [
            ("set", 1, 7),
            ("spawn", 1, 1, 0, 3),
            ("spawn", 2, 1, 0, 4),
            ("loop", 6, 3, 0, 0),
            ("run", 0, 1 << 32 | 3, TABLE, 1),
            ("lock", 0, 0),
            ("end", 3, 0, 0, 0),
            ("unlock", 0, 0),
            ("work", 0, 100),
            ("sleep", 0, 5000),
            ("period", 0, 1000),
            ("read", 4096, 8192, 2, 0),
            ("write", 4096, 8192, 4, 0),
            ("yield", 0, 0),
            ("send", 1, 10),
            ("barrier", 2, 0),
            ("lock", 0, 0),
            ("await", 3, 1),
            ("unlock", 0, 0),
            ("timer", 0, 50_000, 0, 2),
            ("timer", 1, 50_000, 0, 2),
            ("wait", 1, 0),
            ("wait", 0, 0),
            ("exit", 0, 0),
        ],
        affinity=0,
        affinity_words=1,
        attr_given=2,
    )
    child = Task([("recv", 1, 10), ("barrier", 2, 0), ("signal", 3, 0), ("exit", 0, 0)], SPAWNED, 0)
    other = Task([("run", 0, 9), ("await", 3, 0), ("signal", 3, 1), ("exit", 0, 0)], SPAWNED, 0)
    return Program([parent, child, other], [(1, 0), (2, 4096), (3, 2), (4, 0)], [3, 100, 200, 300])
