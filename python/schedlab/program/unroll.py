# SPDX-License-Identifier: MIT
"""The ops of tasks in the order in which they are executed, with loops multiplied out.

Tasks whose ops are alike but for their operands are unrolled together: one row of
operands each, one column per execution. An endless loop is unrolled as far as asked.

Read next: metrics/course.py, which holds records against these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..calibration import WORK_KERNELS, Calibration
from . import layout

if TYPE_CHECKING:
    from .file import Program

_NUMBER = layout.VERB_NUMBER
_EXECUTIONS_FIRST = 4096


@dataclass(frozen=True)
class Unrolled:
    """Executions of the ops of some tasks; LOOP and END are left out."""

    tasks: np.ndarray  #: int64, shape (n_tasks,): indices of the tasks in the program.
    #: layout.OP_DTYPE, shape (n_executions,): those of the first task; `b` may differ in the others.
    ops: np.ndarray = field(repr=False)
    #: int64, shape (n_tasks, n_executions): the `b` of each execution, drawn from its table where it has one.
    operand: np.ndarray = field(repr=False)
    #: int64, shape (n_tasks, n_executions): CPU time that RUN and WORK declare, in nanoseconds; 0 of others.
    cpu_ns: np.ndarray = field(repr=False)
    is_whole: bool = True  #: Whether the executions go up to EXIT.


def unroll(
    program: Program,
    calibration: Calibration,
    *,
    received_ns: np.ndarray,
    n_stops: np.ndarray,
    cells_max: int,
) -> Iterator[Unrolled]:
    """Unroll every task as far as a run may have got."""
    rows = program.task_rows
    for members in program.shapes:
        n_ops = int(rows["nr_ops"][members[0]])
        firsts = rows["op_first"][members].astype(np.int64)
        ops = program.ops[firsts[:, None] + np.arange(n_ops)]
        # What one round finds of all members is some thousand executions.
        length = max(64, _EXECUTIONS_FIRST // len(members))
        while True:
            order, is_whole = _order(ops[0], 0, n_ops, length)
            if len(order) > cells_max:
                break
            if not is_whole and not _is_enough(
                ops, order, program.values, calibration, received_ns[members], n_stops[members]
            ):
                length *= 4
                continue
            step = max(1, cells_max // max(1, len(order)))
            for start in range(0, len(members), step):
                part = slice(start, start + step)
                yield _executions(members[part], ops[part], order, is_whole, program.values, calibration)
            break


def _is_enough(
    ops: np.ndarray,
    order: np.ndarray,
    values: np.ndarray,
    calibration: Calibration,
    received_ns: np.ndarray,
    n_stops: np.ndarray,
) -> bool:
    """Whether no task of a group has got beyond these executions."""
    must_stop = np.isin(ops["verb"][0][order], [_NUMBER["sleep"], _NUMBER["await"]]).sum()
    if (must_stop > n_stops).all():
        return True
    one_by_one = (
        _executions(np.array([0]), ops[i : i + 1], order, False, values, calibration).cpu_ns.sum() > received
        for i, received in enumerate(received_ns)
    )
    return all(one_by_one)


def _order(ops: np.ndarray, begin: int, end: int, length: int) -> tuple[np.ndarray, bool]:
    """Indices of the ops from `begin` to `end` as executed, at most about `length`; is that all?"""
    pieces, total, index = [], 0, begin
    while index < end and total < length:
        verb = int(ops["verb"][index])
        if verb != _NUMBER["loop"]:
            if verb != _NUMBER["end"]:
                pieces.append(np.array([index]))
                total += 1
            index += 1
            continue
        last, rounds = int(ops["a"][index]), int(ops["b"][index])
        body, is_whole = _order(ops, index + 1, last, length - total)
        fitting = max(1, (length - total) // max(1, len(body)))
        if not is_whole:
            return np.concatenate([*pieces, body]), False
        if len(body) == 0 and rounds:
            fitting = rounds
        is_cut = rounds == 0 or rounds > fitting
        pieces.append(np.tile(body, fitting if is_cut else rounds))
        total += len(pieces[-1])
        if is_cut:
            return np.concatenate(pieces), False
        index = last + 1
    order = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
    return order, index >= end


def _executions(
    members: np.ndarray,
    ops: np.ndarray,
    order: np.ndarray,
    is_whole: bool,
    values: np.ndarray,
    calibration: Calibration,
) -> Unrolled:
    """Operands and CPU times of executions in a given order; `ops` has shape (tasks, ops)."""
    chosen = ops[0][order]
    operand = ops["b"][:, order].astype(np.int64)
    from_table = (chosen["flags"] & layout.OP_TABLE) != 0
    for slot in sorted({*chosen["slot"][from_table].tolist()}):
        # The cursor moves on with every execution that draws by it.
        where = np.flatnonzero(from_table & (chosen["slot"] == slot))
        packed = ops["b"][:, order[where]]
        first, number = (
            (packed >> np.uint64(32)).astype(np.int64),
            (packed & np.uint64(layout.NONE)).astype(np.int64),
        )
        operand[:, where] = values[first + np.arange(len(where)) % number].astype(np.int64)
    cpu_ns = np.where(chosen["verb"] == _NUMBER["run"], operand, 0)
    for kernel in sorted({*chosen["a"][chosen["verb"] == _NUMBER["work"]].tolist()}):
        where = np.flatnonzero((chosen["verb"] == _NUMBER["work"]) & (chosen["a"] == kernel))
        unit_ps = calibration.unit_ps(WORK_KERNELS[kernel % len(WORK_KERNELS)])
        # In two steps, since units times picoseconds may be more than 63 bits.
        whole, rest = np.divmod(operand[:, where], 1000)
        cpu_ns[:, where] = whole * unit_ps + rest * unit_ps // 1000
    return Unrolled(np.asarray(members), chosen, operand, cpu_ns, is_whole)
