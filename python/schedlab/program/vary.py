# SPDX-License-Identifier: MIT
"""Change a program: its lengths, as they vary from one real run to the next; how often it is there; weights of its tasks.

A recording is one sample: one decision that goes the other way changes all later ones. Seed 1 is the program as
recorded; every other seed draws a factor for each burst and each sleep.

Read next: compiler.py, which calls it; measure/whatif.py, which asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..workload.phases import ATTRIBUTES
from . import layout
from .file import Program, StringTable, program_bytes, read_program

#: Longer sleeps stand for the end of the recording.
SLEEP_NS_MAX = 1 << 59
#: Nice values that a task can have.
NICE = range(-20, 20)
_ON_OBJECTS = layout.which_verbs("lock", "unlock", "send", "recv", "barrier", "await", "signal", "join")


def varied(program: Program, *, share: float, seed: int) -> Program:
    """Multiply each burst and sleep by a factor of its own, even over 1 - `share` to 1 + `share`."""
    if not share or seed <= 1:
        return program
    ops = program.ops.copy()
    is_length = np.isin(ops["verb"], [layout.VERB_NUMBER["run"], layout.VERB_NUMBER["sleep"]])
    chosen = np.flatnonzero(is_length & (ops["flags"] == 0) & (ops["b"] < SLEEP_NS_MAX))
    # The generator's raw numbers are the same in every version of NumPy.
    drawn = np.random.PCG64(seed).random_raw(len(chosen)) * 2.0**-64
    lengths = np.rint(ops["b"][chosen] * (1 + share * (2 * drawn - 1)))
    ops["b"][chosen] = np.maximum(lengths, 1).astype(np.uint64)
    return _with_table(program, "ops", ops)


def _with_table(program: Program, name: str, table: np.ndarray) -> Program:
    """The same program with other values in one of its tables."""
    data, offset = bytearray(program.data), int(program.header[f"{name}_off"])
    data[offset : offset + table.nbytes] = table.tobytes()
    return read_program(bytes(data))


def weighted(program: Program, factors: Mapping[str, float]) -> Program:
    """Give tasks, by their names, so many times their weight: the nearest that a nice value gives, as Linux has no others."""
    if not factors:
        return program
    rows = program.task_rows.copy()
    weights = np.array([layout.weight_of_nice(nice) for nice in NICE], float)
    for row, name in zip(rows, program.names.values(), strict=True):
        if name in factors:
            wanted = max(1.0, int(row["weight"]) * factors[name])
            row["nice"] = NICE[int(np.abs(np.log(weights / wanted)).argmin())]
            row["weight"] = layout.weight_of_nice(int(row["nice"]))
            row["attr_given"] |= 1 << ATTRIBUTES["nice"][0]
    return _with_table(program, "tasks", rows)


def joined(programs: Sequence[Program], *, n_horizons: int = 1) -> Program:
    """All of them at once, each with locks, pipes and groups of its own; they get so many times the first one's time."""
    first = programs[0]
    tables: dict[str, list[np.ndarray]] = {"tasks": [], "ops": [], "objects": [], "values": []}
    strings = StringTable()
    for program in programs:
        n = {name: sum(map(len, parts)) for name, parts in tables.items()}
        rows, ops, objects = (table.copy() for table in (program.task_rows, program.ops, program.objects))
        values = program.values.copy()
        for field, base in (("parent", n["tasks"]), ("affinity", n["values"])):
            rows[field][rows[field] != layout.NONE] += base
        rows["group_object"][rows["group_object"] != 0] += n["objects"]
        rows["op_first"] += n["ops"]
        verb, is_table = ops["verb"], (ops["flags"] & layout.OP_TABLE) != 0
        ops["a"][_ON_OBJECTS[verb]] += n["objects"]
        ops["a"][verb == layout.VERB_NUMBER["spawn"]] += n["tasks"]
        ops["b"][is_table] += np.uint64(n["values"] << 32)
        ops["b"][(verb == layout.VERB_NUMBER["await"]) & (ops["b"] != 0)] += np.uint64(n["objects"])
        is_group = objects["kind"] == layout.OBJECT_NUMBER["group"]
        parents = objects["param"][is_group].astype(np.int64)
        values[parents[values[parents] != 0]] += np.uint64(n["objects"])
        if program.has_cpusets:
            cpus = parents + layout.GROUP_CPUS
            values[cpus[values[cpus] != 0]] += np.uint64(n["values"] << 32)
        objects["param"][is_group] += np.uint64(n["values"])
        for table in (rows, objects):
            table["name"] += len(strings.bytes)
        for name, part in zip(tables, (rows, ops, objects, values), strict=True):
            tables[name].append(part)
        offset = int(program.header["strings_off"])
        strings.bytes += program.data[offset : offset + int(program.header["strings_bytes"])]
    header: dict[str, int] = {
        name: int(first.header[name]) for name in ("seed", "horizon_ns", "name", "version", "flags")
    }
    header["horizon_ns"] *= n_horizons
    tasks, ops, objects, values = map(np.concatenate, tables.values())
    data = program_bytes(
        tasks=tasks, ops=ops, objects=objects, values=values, strings=strings,
        n_cpus_min=int(first.header["nr_cpus_min"]), **header,
    )  # fmt: skip
    return read_program(data)
