# SPDX-License-Identifier: MIT
"""Compile a workload and a seed into the bytes that every host interprets.

All randomness of a workload is used up here. The same workload and seed give
the same bytes on every machine and in every version of the libraries; their
SHA-256 is the program hash, which proves that two runs did the same work.

A value that is drawn once goes into the op itself; one that is drawn in a loop
becomes a table of values, one per round, which wraps when it is used up (only
loops of more than `TABLE_MAX` rounds, and endless ones, get that far).

Read next: include/schedlab/program.h, the format; file.py, its reader.
"""

from __future__ import annotations

import numpy as np

from ..calibration import WORK_KERNELS
from ..errors import SpecError, SpecFault, UsageError
from ..units import TIME_MAX_NS
from ..workload.checks import loop_depth
from ..workload.distributions import Distribution
from ..workload.model import Task, Workload
from ..workload.phases import ATTRIBUTES, Phase, walk
from . import layout
from .draws import draw_for_seed, name_key
from .file import Program, StringTable, program_bytes, read_program
from .vary import joined, varied, weighted

__all__ = ["Program", "compile_workload", "read_program"]

#: Values of one drawn phase in a loop: at most this many rounds per task ...
TABLE_MAX = 65_536
#: ... this many where the loop never ends ...
TABLE_ENDLESS = 4_096
#: ... and this many for all tasks of a class together, if that leaves each 64.
TABLE_CLASS_MAX = 1 << 20
TABLE_LEAST = 64
VALUES_MAX = 1 << 26
OPS_MAX = 1 << 26

#: Verbs whose `a` is an object.
_ON_OBJECTS = ("lock", "unlock", "send", "recv", "barrier", "await", "signal")

#: What a stream of draws is for; part of its key, so never renumber these.
_FOR_ARRIVAL, _FOR_JITTER, _FOR_PHASE = 1, 2, 3


def compile_workload(workload: Workload, *, seed: int) -> Program:
    """Draw everything that is random and write the program.

    >>> from schedlab.workload.find import load_workload
    >>> program = compile_workload(load_workload("textbook/rr"), seed=0)
    >>> program.tasks["name"].tolist()
    ['A', 'B', 'C', 'D']
    """
    if not 0 <= seed < 2**64:
        raise UsageError(f"seed must be from 0 to 2**64 - 1 (got {seed})")
    # Copies have seeds of their own, far from those of other runs: two that do the same at once would be no load.
    seeds = [(seed + (copy << 40)) % 2**64 for copy in range(workload.copies)]
    if workload.program:
        recorded = read_program(workload.program)
        programs = [varied(recorded, share=workload.vary_share, seed=each) for each in seeds]
    else:
        programs = [_Compiler(workload, each).program() for each in seeds]
    # What was recorded until a horizon is done by then on a machine as busy as that; twice of it needs twice the time.
    n_horizons = len(programs) if workload.program else 1
    program = joined(programs, n_horizons=n_horizons) if len(programs) > 1 else programs[0]
    return weighted(program, workload.weights)


class _Compiler:
    """Collects the tables of one program."""

    def __init__(self, workload: Workload, seed: int):
        self.workload = workload
        self.seed = seed
        self.strings = StringTable()
        self.values: list[np.ndarray] = []
        self.n_values = 0
        self.ops: list[np.ndarray] = []
        self.n_ops = 0
        self.object_idx = {item.name: i for i, item in enumerate(workload.objects)}
        self.order = _order(workload.tasks)
        self.first_idx: dict[str, int] = {}
        total = 0
        for task in self.order:
            self.first_idx[task.name] = total
            total += task.count
        self.jitter = self.jitters()

    def program(self) -> Program:
        name = self.strings.add(self.workload.name)
        by_name = {task.name: task for task in self.workload.tasks}
        tables = [self.task_rows(task, by_name.get(task.parent)) for task in self.order]
        tasks = _joined(tables, layout.TASK_DTYPE)
        groups = self.workload.groups
        has_cpusets = any(group.cpus for group in groups)
        objects = np.zeros(len(self.workload.objects) + len(groups), dtype=layout.OBJECT_DTYPE)
        for row, group in zip(objects[len(self.workload.objects) :], groups, strict=True):
            row["kind"] = layout.OBJECT_NUMBER["group"]
            row["name"] = self.strings.add(group.name)
            values = [self.group_number(group.parent), group.weight, group.period_us, group.quota_us]
            if has_cpusets:
                first, n_words = self.add_mask(group.cpus) if group.cpus else (0, 0)
                values.append(first << 32 | n_words)
            row["param"] = self.add_values(np.array(values, np.uint64))
        for row, item in zip(objects, self.workload.objects, strict=False):
            row["kind"] = layout.OBJECT_NUMBER[item.kind]
            row["name"] = self.strings.add(item.name)
            row["param"] = item.param
        return Program(
            program_bytes(
                tasks=tasks,
                ops=_joined(self.ops, layout.OP_DTYPE),
                objects=objects,
                values=np.concatenate(
                    [np.zeros(0, "<u8"), *(values.astype("<u8") for values in self.values)]
                ),
                strings=self.strings,
                seed=self.seed,
                horizon_ns=self.workload.horizon_ns,
                n_cpus_min=self.workload.cpus_min,
                name=name,
                version=layout.version_of(has_groups=bool(groups), has_cpusets=has_cpusets),
            )
        )

    def group_number(self, name: str) -> int:
        """One more than its object; 0 for the root, which has no name."""
        names = [group.name for group in self.workload.groups]
        return len(self.workload.objects) + names.index(name) + 1 if name else 0

    def fault(self, task: Task, message: str) -> SpecError:
        return SpecError([SpecFault(self.workload.name, None, f"task {task.name!r}", message)])

    # ---- tasks ----------------------------------------------------------

    def task_rows(self, task: Task, parent: Task | None) -> np.ndarray:
        """Write the rows of all instances of one class, and their ops."""
        rows = np.zeros(task.count, dtype=layout.TASK_DTYPE)
        instances = np.arange(task.count, dtype=np.uint64)
        rows["name"] = self.strings.add(task.name)
        rows["class_idx"] = task.class_idx
        rows["parent"] = layout.NONE
        if parent is None:
            rows["arrival_ns"] = self.arrivals(task)
        else:
            rows["arrival_ns"] = layout.ARRIVAL_SPAWNED
            per_parent = task.count // parent.count
            rows["parent"] = self.first_idx[parent.name] + instances // np.uint64(per_parent)
        rows["weight"] = 100
        for name, values in task.attributes.items():
            taken = np.array(values, dtype=np.int64)[instances % np.uint64(len(values))]
            rows[layout.ATTRIBUTE_FIELD[name]] = taken
            rows["attr_given"] |= 1 << ATTRIBUTES[name][0]
            if name == "nice":
                weights = np.array([layout.weight_of_nice(nice) for nice in range(-20, 20)])
                rows["weight"] = weights[taken + 20]
        rows["group_object"] = self.group_number(task.group)
        rows["affinity"] = layout.NONE
        if task.affinity:
            rows["affinity"], rows["affinity_words"] = self.add_mask(task.affinity)
        self.add_ops(task, rows)
        return rows

    def jitters(self) -> dict[str, np.ndarray]:
        """How much later than written the instances of each class arrive; empty where there is no jitter."""
        if not self.seed or not self.workload.jitter_ns:
            return {}
        own = [task for task in self.order if not task.arrival.is_spawned]
        counts = tuple(task.count for task in own)
        drawn = draw_for_seed(
            Distribution("uniform", (0, self.workload.jitter_ns - 1)),
            self.seed,
            tuple((name_key(task.name), _FOR_JITTER) for task in own),
            counts,
        )[:, 0]
        parts = np.split(drawn, np.cumsum(counts)[:-1])
        return {task.name: values for task, values in zip(own, parts, strict=True)}

    def arrivals(self, task: Task) -> np.ndarray:
        """Start times of all instances, jitter included."""
        arrival, count = task.arrival, task.count
        path = name_key(task.name), _FOR_ARRIVAL
        if arrival.gap is not None:
            gaps = draw_for_seed(arrival.gap, self.seed, (path,), (count,))[:, 0]
            # Float sums only guard against overflow; the times are exact.
            if float(arrival.start_ns) + gaps.sum(dtype=np.float64) > 0.99 * TIME_MAX_NS:
                raise self.fault(task, f"arrivals reach beyond {TIME_MAX_NS} ns")
            times = np.cumsum(gaps, dtype=np.uint64) + np.uint64(arrival.start_ns)
        elif arrival.spread is not None:
            times = draw_for_seed(arrival.spread, self.seed, (path,), (count,))[:, 0]
        else:
            given = np.array(arrival.times_ns, dtype=np.uint64)
            times = given[np.arange(count) % len(given)]
        if task.name in self.jitter:
            times = times + self.jitter[task.name]
        if times.max() > np.uint64(TIME_MAX_NS):
            raise self.fault(task, f"arrivals reach beyond {TIME_MAX_NS} ns")
        return times

    def add_values(self, values: np.ndarray) -> int:
        """Append to the values; return the index of the first."""
        first = self.n_values
        self.values.append(values)
        self.n_values += len(values)
        return first

    def add_mask(self, cpus: tuple[int, ...]) -> tuple[int, int]:
        """Append a mask to the values; return the index of its first word, and how many they are."""
        mask = np.zeros(max(cpus) // 64 + 1, dtype=np.uint64)
        for cpu in cpus:
            mask[cpu // 64] |= np.uint64(1 << (cpu % 64))
        return self.add_values(mask), len(mask)

    # ---- ops ------------------------------------------------------------

    def add_ops(self, task: Task, rows: np.ndarray) -> None:
        """Write the ops of a class: once, or once per instance if they differ."""
        writer = _OpWriter(self, task)
        writer.write(task.phases, depth=0)
        writer.op("exit")
        template = np.array(writer.ops, dtype=layout.OP_DTYPE)
        rows["nr_ops"] = len(template)
        rows["op_first"] = self.n_ops
        if task.is_burst_from_run:
            rows["burst_ns"] = writer.first_run
            rows["attr_given"] |= 1 << ATTRIBUTES["burst"][0]
        if not writer.columns:
            self.ops.append(template)
            self.n_ops += len(template)
            return
        if self.n_ops + len(template) * task.count > OPS_MAX:
            raise self.fault(
                task,
                f"{task.count} tasks of {len(template)} phases are too many: at most {OPS_MAX} phases in all",
            )
        ops = np.tile(template, (task.count, 1))
        for (index, field), column in writer.columns.items():
            ops[field][:, index] = column
        rows["op_first"] += np.arange(task.count, dtype=np.uint32) * np.uint32(len(template))
        self.ops.append(ops.ravel())
        self.n_ops += ops.size


class _OpWriter:
    """Writes the ops of one class, and notes what differs between instances."""

    def __init__(self, compiler: _Compiler, task: Task):
        self.compiler = compiler
        self.task = task
        self.ops: list[tuple[int, int, int, int, int]] = []
        #: (op, field) -> one value per instance.
        self.columns: dict[tuple[int, str], np.ndarray] = {}
        self.first_run: np.ndarray | int = 0
        self.has_run = False
        self.times = {phase.at: times for phase, times in walk(task.phases)}
        self.next_slot = loop_depth(task.phases)  # loops have the first ones
        self.spawn_slots: dict[str, int] = {}
        self.timer_slots: dict[str, int] = {}
        self.spawned_per_task: dict[str, int] = {}
        for phase, times in walk(task.phases):
            if phase.verb == "spawn":
                before = self.spawned_per_task.get(phase.name, 0)
                self.spawned_per_task[phase.name] = before + (times or 0)
        self.n_phases = 0

    def op(self, verb: str, *, flags: int = 0, slot: int = 0, a: int = 0, b: int = 0) -> int:
        """Append one op; return its index."""
        self.ops.append((layout.VERB_NUMBER[verb], flags, slot, a, b))
        return len(self.ops) - 1

    def write(self, phases: tuple[Phase, ...], *, depth: int) -> None:
        """Append the ops of a list of phases."""
        for phase in phases:
            number = self.n_phases
            self.n_phases += 1
            if phase.verb == "loop":
                self.loop(phase, depth)
            elif phase.verb == "spawn":
                self.spawn(phase)
            elif phase.verb == "change":
                self.change(phase)
            elif phase.verb != "exit":  # it can only be last, where one stands anyway
                self.plain(phase, number)

    def loop(self, phase: Phase, depth: int) -> None:
        start = self.op("loop", slot=depth, b=phase.rounds)
        self.write(phase.body, depth=depth + 1)
        pausing = (
            "run",
            "work",
            "sleep",
            "read",
            "write",
            "send",
            "recv",
            "period",
            "yield",
            "lock",
            "barrier",
            "wait",
            "await",
            "timer",
        )
        if not any(inside.verb in pausing for inside, _ in walk(phase.body)):
            # player/program.c refuses loops in which time stands still, since an
            # endless one would hang a host; this one ends, so say so with 0 ns.
            self.op("run", b=0)
        end = self.op("end", slot=depth, a=start)
        verb, flags, slot, _, rounds = self.ops[start]
        self.ops[start] = (verb, flags, slot, end, rounds)

    def spawn(self, phase: Phase) -> None:
        """All spawns of one class share a slot: its cursor walks the children."""
        slot = self.spawn_slots.get(phase.name)
        if slot is None:
            slot = self.spawn_slots[phase.name] = self.next_slot
            self.next_slot += 1
        number = self.spawned_per_task[phase.name]
        first = self.compiler.first_idx[phase.name]
        index = self.op("spawn", slot=slot, a=first, b=number)
        if self.task.count > 1:
            instances = np.arange(self.task.count, dtype=np.uint32)
            self.columns[index, "a"] = np.uint32(first) + instances * np.uint32(number)

    def change(self, phase: Phase) -> None:
        """An op for each task that is changed."""
        first, count = layout.NONE, 1
        if phase.target:
            first = self.compiler.first_idx[phase.target]
            count = next(task.count for task in self.compiler.order if task.name == phase.target)
        if phase.name == "affinity":
            at, n_words = self.compiler.add_mask(phase.cpus)
            slot, value = layout.CHANGE_AFFINITY, at << 32 | n_words
        else:
            slot, value = ATTRIBUTES[phase.name][0], _attribute(phase)
        for number in range(count):
            self.op("change", slot=slot, a=first + number, b=value)

    def plain(self, phase: Phase, number: int) -> None:
        """Write a verb that is one op."""
        flags, a, slot = 0, 0, 0
        if phase.verb in _ON_OBJECTS:
            a = self.compiler.object_idx[phase.name]
        elif phase.verb == "join":
            a = self.compiler.group_number(phase.name) - 1
        elif phase.verb == "timer":
            slot = self.timer_slots.setdefault(phase.name, self.next_slot)
            self.next_slot += slot == self.next_slot
            a = int(phase.option)
        elif phase.verb == "work":
            a = WORK_KERNELS.index(phase.name)
        elif phase.verb in ("read", "write"):
            a = phase.chunk_bytes
            flags |= layout.OP_SYNC if phase.is_sync else 0
            flags |= layout.OP_DIRECT if phase.is_direct else 0
        constant = phase.amount.constant if phase.amount else 0
        if phase.verb == "wait":
            a, constant = constant or 0, 0
        elif phase.verb == "set":
            a, constant = ATTRIBUTES[phase.name][0], _attribute(phase)
        elif phase.verb == "await":
            constant = self.compiler.object_idx[phase.lock] + 1 if phase.lock else 0
        elif phase.verb == "signal":
            constant = int(phase.option)
        index = self.op(phase.verb, flags=flags, slot=slot, a=a, b=constant or 0)
        drawn = constant if constant is not None else self.drawn(phase, index, number)
        if phase.verb == "run" and not self.has_run:
            self.first_run, self.has_run = drawn, True

    def drawn(self, phase: Phase, index: int, number: int) -> np.ndarray:
        """Draw the operand of an op; return the first value of each instance."""
        task, compiler = self.task, self.compiler
        assert phase.amount is not None  # else there is a constant
        path = name_key(task.name), _FOR_PHASE, number
        times = self.times[phase.at]
        if times == 1:
            values = draw_for_seed(phase.amount, compiler.seed, (path,), (task.count,))[:, 0]
            self.columns[index, "b"] = values
            return values
        share = max(TABLE_CLASS_MAX // task.count, TABLE_LEAST)
        length = min(TABLE_ENDLESS if times is None else times, TABLE_MAX, share)
        if compiler.n_values + length * task.count > VALUES_MAX:
            raise compiler.fault(
                task,
                f"phase {phase.number}: {length} random values for each of "
                f"{task.count} tasks are too many: at most {VALUES_MAX} in all",
            )
        values = draw_for_seed(phase.amount, compiler.seed, (path,), (task.count,), length)
        first = compiler.add_values(values.ravel())
        starts = np.uint64(first) + np.arange(task.count, dtype=np.uint64) * np.uint64(length)
        self.columns[index, "b"] = (starts << np.uint64(32)) | np.uint64(length)
        verb, flags, _, a, b = self.ops[index]
        self.ops[index] = (verb, flags | layout.OP_TABLE, self.next_slot, a, b)
        self.next_slot += 1
        return values[:, 0]


def _attribute(phase: Phase) -> int:
    """The value that a `set` or `change` gives an attribute, as a program has it."""
    assert phase.amount is not None and phase.amount.constant is not None
    value = phase.amount.constant
    if phase.name == "nice":
        value = layout.weight_of_nice(value)
    return value & layout.NONE if value < 0 else value  # below 0: as a 32-bit number


def _joined(tables: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """What `np.concatenate` returns, which asks of every two tables of structures anew how their types mix."""
    return np.frombuffer(b"".join(table.tobytes() for table in tables), dtype)


def _order(tasks: tuple[Task, ...]) -> list[Task]:
    """Order classes so that parents stand before children.

    Those that arrive by themselves come first, in the order of the file; then
    the children of each, in the order in which they are first spawned.
    """
    by_name = {task.name: task for task in tasks}
    order = [task for task in tasks if not task.arrival.is_spawned]
    placed = {task.name for task in order}
    for task in order:  # grows while it is walked
        for phase, _ in walk(task.phases):
            if phase.verb == "spawn" and phase.name not in placed:
                placed.add(phase.name)
                order.append(by_name[phase.name])
    return order
