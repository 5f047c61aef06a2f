# SPDX-License-Identifier: MIT
"""A workload program as bytes: write them, read them back, explain them.

Whatever is asked of a program (its tasks, its declared work, its text) is read
from the bytes that hosts get, never from the workload it was made from.

Read next: include/schedlab/program.h, the format.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..calibration import DEFAULT_CALIBRATION, WORK_KERNELS, Calibration
from ..errors import ProgramError
from ..units import format_duration, format_size
from ..workload.model import NO_QUOTA
from ..workload.phases import ATTRIBUTES
from . import layout

_ATTRIBUTE_OF_KEY = {number: name for name, (number, *_) in ATTRIBUTES.items() if name != "nice"}


class StringTable:
    """The string table of a program to be; equal strings are stored once."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.offsets: dict[str, int] = {}

    def add(self, text: str) -> int:
        """Offset of a text in the table."""
        if text not in self.offsets:
            self.offsets[text] = len(self.bytes)
            self.bytes += text.encode() + b"\0"
        return self.offsets[text]


def program_bytes(
    *,
    tasks: np.ndarray,
    ops: np.ndarray,
    objects: np.ndarray,
    values: np.ndarray,
    strings: StringTable,
    **more: int,
) -> bytes:
    """Write a program: its header, then its tables."""
    tables = {"tasks": tasks, "ops": ops, "objects": objects, "values": values.astype("<u8")}
    parts = {name: table.tobytes() for name, table in tables.items()} | {"strings": bytes(strings.bytes)}
    header = np.zeros((), dtype=layout.HEADER_DTYPE)
    offset = layout.HEADER_DTYPE.itemsize
    for name, part in parts.items():
        header[f"{name}_off"] = offset
        offset += len(part)
    header["magic"], header["version"] = layout.MAGIC, layout.VERSION
    header["header_bytes"], header["total_bytes"] = layout.HEADER_DTYPE.itemsize, offset
    for name, table in tables.items():
        header[f"nr_{name}"] = len(table)
    header["strings_bytes"] = len(strings.bytes)
    for name, value in more.items():
        # A count is `nr_` in program.h.
        header[f"nr_{name[2:]}" if name.startswith("n_") else name] = value
    return header.tobytes() + b"".join(parts.values())


class CGroup(NamedTuple):
    """A cgroup of a program."""

    name: str
    parent: int  #: As in `Program.groups`; 0: the root.
    weight: int
    limit_us: tuple[int, int] | None  #: CPU time in each period, and the period.
    cpus: tuple[int, ...]  #: Empty: all that its parent has.


class Program:
    """A compiled workload: immutable bytes, and views of them.

    `header` is of type `layout.HEADER_DTYPE`; `task_rows`, `ops`, `objects`, `values` are the tables, of
    the types in `layout`, read-only. ProgramError, with the offset: the bytes are no program, are cut
    short, or contain an index that leaves its table.
    """

    def __init__(self, data: bytes):
        self.data = bytes(data)
        self.header = _header(self.data)
        header = self.header
        self.task_rows = self._table("tasks", layout.TASK_DTYPE, int(header["nr_tasks"]))
        self.ops = self._table("ops", layout.OP_DTYPE, int(header["nr_ops"]))
        self.objects = self._table("objects", layout.OBJECT_DTYPE, int(header["nr_objects"]))
        self.values = self._table("values", np.dtype("<u8"), int(header["nr_values"]))
        strings = self._table("strings", np.dtype("u1"), int(header["strings_bytes"]))
        self._strings = strings.tobytes()
        self._masks: dict[tuple[int, int], tuple[int, ...]] = {}
        self._check()

    def _table(self, name: str, dtype: np.dtype, number: int) -> np.ndarray:
        offset = int(self.header[f"{name}_off"])
        end = offset + number * dtype.itemsize
        if offset < layout.HEADER_DTYPE.itemsize or end > len(self.data):
            raise ProgramError(
                f"offset {offset}: the {number} {name} end at byte {end}, but the program has "
                f"{len(self.data)} bytes"
            )
        return np.frombuffer(self.data, dtype=dtype, count=number, offset=offset)

    def _check(self) -> None:
        """Check every index that this module follows."""
        if self._strings and self._strings[-1] != 0:
            raise ProgramError("the last string has no end")
        rows, ops = self.task_rows, self.ops
        limits = [
            ("task", "tasks", rows["name"], len(self._strings), "name", layout.TASK_DTYPE),
            ("object", "objects", self.objects["name"], len(self._strings), "name", layout.OBJECT_DTYPE),
            ("op", "ops", ops["verb"], len(layout.VERBS), "verb", layout.OP_DTYPE),
        ]
        for what, table, numbers, limit, field, dtype in limits:
            bad = np.flatnonzero(numbers >= limit)
            if len(bad):
                offset = int(self.header[f"{table}_off"]) + int(bad[0]) * dtype.itemsize
                raise ProgramError(
                    f"offset {offset}: {what} {bad[0]}: {field} is {numbers[bad[0]]}, "
                    f"but must be below {limit}"
                )
        last = rows["op_first"].astype(np.uint64) + rows["nr_ops"]
        bad = np.flatnonzero((last > len(ops)) | (rows["nr_ops"] == 0))
        if len(bad):
            offset = int(self.header["tasks_off"]) + int(bad[0]) * layout.TASK_DTYPE.itemsize
            raise ProgramError(f"offset {offset}: task {bad[0]}: its ops leave the table")
        is_table = (ops["flags"] & layout.OP_TABLE) != 0
        first, number = ops["b"] >> np.uint64(32), ops["b"] & np.uint64(layout.NONE)
        bad = np.flatnonzero(is_table & ((first + number > len(self.values)) | (number == 0)))
        if len(bad):
            offset = int(self.header["ops_off"]) + int(bad[0]) * layout.OP_DTYPE.itemsize
            raise ProgramError(f"offset {offset}: op {bad[0]}: its values leave the table")

    @cached_property
    def program_hash(self) -> str:
        """SHA-256 of the bytes, 64 hexadecimal digits."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def shapes(self) -> list[np.ndarray]:
        """Indices of the tasks whose ops are alike but for their operands; see `work.same_shape`."""
        from .work import same_shape

        return same_shape(self.task_rows, self.ops)

    @property
    def seed(self) -> int:
        """The seed its random numbers were drawn from."""
        return int(self.header["seed"])

    @property
    def name(self) -> str:
        """Name of the workload."""
        return self.string(int(self.header["name"]))

    @property
    def horizon_ns(self) -> int:
        """When the run ends, in ns; 0: when all tasks have ended."""
        return int(self.header["horizon_ns"])

    @property
    def has_groups(self) -> bool:
        """Whether tasks are in cgroups."""
        return int(self.header["version"]) >= layout.VERSION_WITH_GROUPS

    @property
    def has_cpusets(self) -> bool:
        """Whether a cgroup has CPUs of its own."""
        return int(self.header["version"]) >= layout.VERSION_WITH_CPUSETS

    @property
    def n_tasks(self) -> int:
        """Number of tasks, spawned ones included."""
        return len(self.task_rows)

    def string(self, offset: int) -> str:
        """Text at an offset of the string table; empty for `layout.NONE`."""
        if offset >= len(self._strings):
            return ""
        end = self._strings.index(b"\0", offset)
        return self._strings[offset:end].decode("utf-8", "replace")

    def cpus_of(self, index: int) -> tuple[int, ...] | None:
        """CPUs on which the task of pid `index` + 1 may run at first, ascending; None: on all.

        Those that it asks for and its group has; all of the group's where that is none (S49).
        """
        row = self.task_rows[index]
        return self._cpus_in(int(row["affinity"]), int(row["affinity_words"]), int(self.group_of[index]))

    def _cpus_in(self, first: int, n_words: int, group: int) -> tuple[int, ...] | None:
        own = None if first == layout.NONE else self._cpus_at(first, n_words)
        cpus = self._group_cpus.get(group) if self.has_cpusets else None
        return tuple(sorted(cpus.intersection(own or ()) or cpus)) if cpus else own

    @cached_property
    def _group_cpus(self) -> dict[int, frozenset[int]]:
        """CPUs of the tasks in each group, by one more than its object; empty: all."""
        found: dict[int, frozenset[int]] = {0: frozenset()}
        for number, item in enumerate(self.objects, 1):  # a parent stands before its children
            if item["kind"] == layout.OBJECT_NUMBER["group"]:
                first = int(item["param"])
                above, own = found[int(self.values[first])], self._own_cpus(first)
                found[number] = above & own or above or own
        return found

    def _own_cpus(self, first: int) -> frozenset[int]:
        """What the values of a group, from this one on, say of its CPUs; empty: nothing."""
        place = int(self.values[first + layout.GROUP_CPUS]) if self.has_cpusets else 0
        return frozenset(self._cpus_at(place >> 32, place & layout.NONE)) if place else frozenset()

    @cached_property
    def group_of(self) -> np.ndarray:
        """Where each task begins, by pid - 1: one more than the object of its cgroup, 0 for the root."""
        group = self.task_rows["group_object"].copy()
        for index in np.flatnonzero(self.task_rows["parent"] != layout.NONE).tolist():
            group[index] = group[self.task_rows["parent"][index]]  # which stands before it
        return group

    def _cpus_at(self, first: int, n_words: int) -> tuple[int, ...]:
        """CPUs of a mask in the table of values, which many tasks may share."""
        mask = self._masks.get((first, n_words))
        if mask is None:
            words = self.values[first : first + n_words].tolist()
            mask = tuple(64 * i + bit for i, word in enumerate(words) for bit in range(64) if word >> bit & 1)
            self._masks[first, n_words] = mask
        return mask

    @cached_property
    def has_mask_changed(self) -> np.ndarray:
        """Tasks whose CPUs a `change` or a `join` changes in the course of a run, by pid - 1."""
        changed = np.zeros(len(self.task_rows), bool)
        ops = self.ops
        is_one = (ops["verb"] == layout.VERB_NUMBER["change"]) & (ops["slot"] == layout.CHANGE_AFFINITY)
        is_join = (ops["verb"] == layout.VERB_NUMBER["join"]) & self.has_cpusets
        if is_one.any() or is_join.any():
            other = ops["a"][is_one & (ops["a"] != layout.NONE)]
            changed[other[other < len(changed)]] = True
            n_before = np.concatenate([[0], np.cumsum(is_join | (is_one & (ops["a"] == layout.NONE)))])
            first = self.task_rows["op_first"].astype(np.int64)
            changed |= n_before[first + self.task_rows["nr_ops"]] > n_before[first]
        if is_join.any():
            for row in np.flatnonzero(self.task_rows["parent"] != layout.NONE).tolist():
                changed[row] |= changed[self.task_rows["parent"][row]]  # it begins where its parent is
        return changed

    @property
    def affinity(self) -> list[tuple[int, ...] | None]:
        """`cpus_of` every task, by pid - 1, None where it changes; empty where all may run on all CPUs."""
        rows = self.task_rows
        if (rows["affinity"] == layout.NONE).all() and not self.has_cpusets:
            return []
        columns = rows["affinity"], rows["affinity_words"], self.group_of, self.has_mask_changed
        places = zip(*(column.tolist() for column in columns), strict=True)
        return [None if changes else self._cpus_in(*place) for *place, changes in places]

    @property
    def names(self) -> dict[int, str]:
        """Name of each task, by pid."""
        return {pid: self.string(offset) for pid, offset in enumerate(self.task_rows["name"].tolist(), 1)}

    @cached_property
    def tasks(self) -> dict[str, np.ndarray]:
        """The tasks as columns, ready for `polars.DataFrame`.

        `pid` (index + 1), `name`, `class_idx`, `is_spawned`, `arrival_ns` (0 where spawned), `parent_pid`
        (0: none), `weight`, `nice`, `priority`, `tickets`, `credits`, `cap_percent`, `group`,
        `deadline_ns`, `burst_ns`, `attr_given` (bits of enum task_attr_key).
        """
        rows = self.task_rows
        offsets, which = np.unique(rows["name"], return_inverse=True)
        names = np.array([self.string(int(offset)) for offset in offsets])
        is_spawned = rows["arrival_ns"] == np.uint64(layout.ARRIVAL_SPAWNED)
        has_parent = rows["parent"] != layout.NONE
        columns = {
            "pid": np.arange(1, len(rows) + 1, dtype=np.uint32),
            "name": names[which],
            "class_idx": rows["class_idx"].copy(),
            "is_spawned": is_spawned,
            "arrival_ns": np.where(is_spawned, np.uint64(0), rows["arrival_ns"]),
            "parent_pid": np.where(has_parent, rows["parent"] + np.uint32(1), np.uint32(0)),
        }
        for field in (
            "weight",
            "nice",
            "priority",
            "tickets",
            "credits",
            "cap_percent",
            "group",
            "deadline_ns",
            "burst_ns",
            "attr_given",
        ):
            columns[field] = rows[field].copy()
        return columns

    def work_ns(self, calibration: Calibration = DEFAULT_CALIBRATION) -> np.ndarray:
        """CPU time that each task declares: all its `run` and `work` phases."""
        from .work import declared_work_ns

        return declared_work_ns(self, calibration)

    def save(self, path: str | Path) -> None:
        """Write the bytes to a file."""
        Path(path).write_bytes(self.data)

    def describe(self) -> str:
        """Explain the program in words.

        The header, then each class of tasks with its attributes and the ops of its first instance.
        """
        header = self.header
        lines = [
            f"{self.name}: seed {self.seed}, {self.n_tasks} tasks, {len(self.ops)} ops, "
            f"{len(self.values)} values, {len(self.data)} bytes",
            f"hash {self.program_hash}",
        ]
        if self.horizon_ns:
            lines.append(f"ends at {format_duration(self.horizon_ns)}")
        if header["nr_cpus_min"]:
            lines.append(f"needs {header['nr_cpus_min']} CPUs")
        for item in self.objects:
            kind = layout.OBJECT_NAME.get(int(item["kind"]), "object")
            name, param = self.string(int(item["name"])), int(item["param"])
            lines.append(f"{kind} {name} {self._group_text(item) if kind == 'group' else param}")
        classes, firsts, counts = np.unique(
            self.task_rows["class_idx"], return_index=True, return_counts=True
        )
        for class_idx, first, count in zip(classes, firsts, counts, strict=True):
            rows = self.task_rows[self.task_rows["class_idx"] == class_idx]
            name = self.string(int(rows[0]["name"]))
            lines.append(f"task {name}: {count}, pid {first + 1} on, {_arrival_text(rows)}")
            attributes = _attribute_text(rows[0])
            if attributes:
                lines.append(f"  {attributes}")
            lines += [f"  {line}" for line in self._op_lines(rows[0])]
        return "\n".join(lines)

    def _group(self, item: np.void) -> CGroup:
        first = int(item["param"])
        parent, weight, period_us, quota_us = map(int, self.values[first : first + layout.N_GROUP_VALUES])
        return CGroup(
            self.string(int(item["name"])),
            parent,
            weight,
            None if quota_us == NO_QUOTA else (quota_us, period_us),
            tuple(sorted(self._own_cpus(first))),
        )

    @cached_property
    def groups(self) -> dict[int, CGroup]:
        """The workload's cgroups by one more than their object, each after its parent; 0 is the root, which is not among them."""
        is_group = self.objects["kind"] == layout.OBJECT_NUMBER["group"]
        return {i + 1: self._group(self.objects[i]) for i in np.flatnonzero(is_group).tolist()}

    def _group_text(self, item: np.void) -> str:
        group = self._group(item)
        within = f"in {self._object_name(group.parent - 1)}, " if group.parent else ""
        limit = f", {group.limit_us[0]} us of each {group.limit_us[1]} us" if group.limit_us else ""
        return f"{within}weight {group.weight}{limit}" + (f", CPUs {list(group.cpus)}" if group.cpus else "")

    def _op_lines(self, row: np.void) -> list[str]:
        lines, indent = [], 0
        first = int(row["op_first"])
        for i, op in enumerate(self.ops[first : first + int(row["nr_ops"])]):
            verb = layout.VERBS[op["verb"]]
            indent -= verb == "end"
            lines.append(f"{i:4} {'  ' * max(indent, 0)}{verb} {self._operand_text(verb, op)}".rstrip())
            indent += verb == "loop"
        return lines

    def _object_name(self, index: int) -> str:
        if index >= len(self.objects):
            return f"? {index}"
        return self.string(int(self.objects[index]["name"]))

    def _operand_text(self, verb: str, op: np.void) -> str:
        a, b = int(op["a"]), int(op["b"])
        if op["flags"] & layout.OP_TABLE:
            first, number = b >> 32, b & layout.NONE
            shown = f"next of {number} values from {self.values[first]}"
        elif verb in ("run", "sleep", "period"):
            shown = format_duration(b)
        elif verb in ("read", "write", "send", "recv"):
            shown = format_size(b)
        else:
            shown = str(b)
        if verb == "work":
            return f"{WORK_KERNELS[a] if a < len(WORK_KERNELS) else a} {shown}"
        if verb in ("lock", "unlock", "barrier", "join"):
            return self._object_name(a)
        if verb in ("send", "recv"):
            return f"{self._object_name(a)} {shown}"
        if verb == "await":
            return f"{self._object_name(a)} without {self._object_name(b - 1)}" if b else self._object_name(a)
        if verb == "signal":
            return self._object_name(a) + " to all" * bool(b)
        if verb == "timer":
            return f"{format_duration(b)} after the last" + " due" * bool(a)
        if verb in ("read", "write"):
            flags = " sync" * bool(op["flags"] & layout.OP_SYNC)
            flags += " direct" * bool(op["flags"] & layout.OP_DIRECT)
            return f"{shown} by {format_size(a)}{flags}"
        if verb == "spawn":
            return f"the next of pids {a + 1} to {a + b}"
        if verb == "change":
            key, whose = int(op["slot"]), "itself" if a == layout.NONE else f"pid {a + 1}"
            if key == layout.CHANGE_AFFINITY:
                return f"affinity of {whose} = {[*self._cpus_at(b >> 32, b & layout.NONE)]}"
            return f"{_ATTRIBUTE_OF_KEY.get(key, key)} of {whose} = {shown}"
        if verb == "set":
            return f"{_ATTRIBUTE_OF_KEY.get(a, a)} = {shown}"
        if verb == "loop":
            return f"{shown} times" if b else "for ever"
        if verb == "wait":
            return f"for {a}" if a else "for all"
        return "" if verb in ("exit", "yield", "end", "unlock") else shown


def _arrival_text(rows: np.ndarray) -> str:
    if rows[0]["arrival_ns"] == np.uint64(layout.ARRIVAL_SPAWNED):
        return "spawned"
    low, high = int(rows["arrival_ns"].min()), int(rows["arrival_ns"].max())
    if low == high:
        return f"arrives at {format_duration(low)}"
    return f"arrives from {format_duration(low)} to {format_duration(high)}"


def _attribute_text(row: np.void) -> str:
    given = int(row["attr_given"])
    parts = [
        f"{name} {row[layout.ATTRIBUTE_FIELD[name]]}"
        for number, name in _ATTRIBUTE_OF_KEY.items()
        if given >> number & 1
    ]
    return ", ".join(parts)


def _header(data: bytes) -> np.void:
    """Read and check the header."""
    size = layout.HEADER_DTYPE.itemsize
    if len(data) < size:
        raise ProgramError(f"offset {len(data)}: cut short; a program has at least {size} bytes")
    if data[:8] != layout.MAGIC:
        raise ProgramError("offset 0: not a workload program (its first bytes are others)")
    header = np.frombuffer(data, dtype=layout.HEADER_DTYPE, count=1)[0]
    if not layout.VERSION <= header["version"] <= layout.VERSION_WITH_CPUSETS:
        raise ProgramError(
            f"offset 8: version {header['version']}; this schedlab reads {layout.VERSION} to "
            f"{layout.VERSION_WITH_CPUSETS}"
        )
    if header["header_bytes"] != size:
        raise ProgramError(f"offset 12: header of {header['header_bytes']} bytes, not {size}")
    if header["total_bytes"] != len(data):
        raise ProgramError(f"offset {len(data)}: the program should have {header['total_bytes']} bytes")
    return header


def read_program(source: bytes | str | Path) -> Program:
    """Read a program from bytes or from a file."""
    if isinstance(source, bytes | bytearray | memoryview):
        return Program(bytes(source))
    try:
        return Program(Path(source).read_bytes())
    except OSError as error:
        raise ProgramError(f"{source}: {error.strerror or error}") from None
    except ProgramError as error:
        raise ProgramError(f"{source}: {error}") from None


def find_program(folder: Path, program_hash: str | None) -> Program | None:
    """The program of a run, where `schedlab run` put it: beside the run's folder, or above."""
    path = find_program_file(folder, program_hash)
    return read_program(path) if path else None


def find_program_file(folder: Path, program_hash: str | None) -> Path | None:
    """The file of the same."""
    if not program_hash:
        return None
    for parent in list(folder.resolve().parents)[:4]:
        for path in sorted(parent.glob(f"programs/*{program_hash[:12]}.slprog")):
            if read_program(path).program_hash == program_hash:
                return path
    return None
