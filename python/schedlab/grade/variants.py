# SPDX-License-Identifier: MIT
"""The work of one student: which variants of a workload, and in what disguise.

        secret, workload, number  ->  seed, order of the pids      a variant
        secret, student           ->  which variants               the first one is everybody's

A variant is drawn once for all students, so that a comparison's other policy runs it once. In
each, pids are shuffled and all tasks are called the same: neither order nor name says what
a task will do.

Invariant: without the secret nobody knows a variant; with it, everybody gets the same ones again.
Read next: runs.py.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import random
from pathlib import Path

import numpy as np

from ..errors import UsageError
from ..program import layout
from ..program.compiler import compile_workload
from ..program.file import Program, StringTable, program_bytes
from .assignment import Assignment, Graded

TASK_NAME = "task"
SECRET_BYTES_MIN = 8
#: The variant that all students have: decisions are held against each other on it.
COMMON = 0
#: Of tests with exact answers: nothing is moved by chance, but pids are shuffled.
EXACT = -1
#: Of no student: what a counter-example is shrunk by.
TRIAL = -2


def read_secret(path: Path) -> bytes:
    """Read the secret, or make one where there is no such file.

    The file is to be kept, and not to be given to students. UsageError: it cannot be read or made, or is
    too short.
    """
    try:
        if not path.exists():
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(os.urandom(16).hex() + "\n")
        secret = path.read_bytes().strip()
    except OSError as error:
        raise UsageError(f"--secret {path}: {error.strerror or error}") from error
    if len(secret) < SECRET_BYTES_MIN:
        raise UsageError(f"--secret {path}: {len(secret)} bytes are no secret; at least {SECRET_BYTES_MIN}")
    return secret


def _drawn(secret: bytes, *words: object) -> bytes:
    return hmac.new(secret, "\0".join(map(str, words)).encode(), hashlib.sha256).digest()


def variants_of(assignment: Assignment, secret: bytes, student: str) -> list[int]:
    """Numbers of a student's variants.

    The common one, then the student's own, as the secret decides; as many as there are seeds.
    """
    numbers = range(COMMON + 1, assignment.n_variants)
    own = sorted(numbers, key=lambda number: _drawn(secret, "student", student, number))
    return [COMMON, *own[: assignment.n_seeds - 1]]


def seed_of(secret: bytes, graded: Graded, variant: int) -> int:
    """Seed of a variant, for its program and for what a policy draws."""
    if variant == EXACT:
        return 0
    return int.from_bytes(_drawn(secret, "seed", graded.name, variant)[:6], "little") + 1


def make_variant(secret: bytes, graded: Graded, variant: int) -> tuple[Program, list[str]]:
    """Compile a variant.

    `variant` is its number, or `EXACT`. With the program comes what the task of pid i + 1 is called in the
    workload.
    """
    program = compile_workload(graded.workload, seed=seed_of(secret, graded, variant))
    rng = random.Random(_drawn(secret, "order", graded.name, variant))
    order = _new_order(program, rng)
    names = program.tasks["name"].tolist()
    return _reordered(program, order), [names[old] for old in order]


def _new_order(program: Program, rng: random.Random) -> list[int]:
    """Old index of each task to be: those without parent at random, then each family in a row, parents first."""
    parents = program.task_rows["parent"]
    roots = np.flatnonzero(parents == layout.NONE).tolist()
    rng.shuffle(roots)
    order, placed = list(roots), set(roots)
    waiting = _families(program)
    while waiting:
        ready = [block for block in waiting if int(parents[block[0]]) in placed]
        rng.shuffle(ready)
        for first, number in ready:
            order += range(first, first + number)
            placed.update(range(first, first + number))
        waiting = [block for block in waiting if block[0] not in placed]
    return order


def _families(program: Program) -> list[tuple[int, int]]:
    """First child and number of children of each `spawn`: these stay in a row."""
    spawns = program.ops[program.ops["verb"] == layout.VERB_NUMBER["spawn"]]
    return sorted({(int(op["a"]), int(op["b"])) for op in spawns})


def _reordered(program: Program, order: list[int]) -> Program:
    """The same tasks with other pids, all of one name."""
    new_of = np.zeros(len(order), np.uint32)
    new_of[order] = np.arange(len(order), dtype=np.uint32)
    tasks = program.task_rows[order].copy()
    has_parent = tasks["parent"] != layout.NONE
    tasks["parent"][has_parent] = new_of[tasks["parent"][has_parent]]
    ops = program.ops.copy()
    is_spawn = ops["verb"] == layout.VERB_NUMBER["spawn"]
    ops["a"][is_spawn] = new_of[ops["a"][is_spawn]]
    strings = StringTable()
    tasks["name"] = strings.add(TASK_NAME)
    objects = program.objects.copy()
    for row in objects:
        row["name"] = strings.add(program.string(int(row["name"])))
    return Program(
        program_bytes(
            tasks=tasks,
            ops=ops,
            objects=objects,
            values=program.values,
            strings=strings,
            seed=program.seed,
            horizon_ns=program.horizon_ns,
            n_cpus_min=int(program.header["nr_cpus_min"]),
            name=strings.add("work"),
        )
    )
