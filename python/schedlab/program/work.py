# SPDX-License-Identifier: MIT
"""How much CPU time the tasks of a program declare, without running it.

Loops are multiplied out, tables of drawn values are summed as often as they are
used. The consistency check compares the result with what a run says it did.

Read next: metrics/consistency.py, which uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..calibration import WORK_KERNELS, Calibration
from . import layout

if TYPE_CHECKING:
    from .file import Program

_RUN, _WORK = layout.VERB_NUMBER["run"], layout.VERB_NUMBER["work"]
_SIZED = layout.which_verbs("work", "read", "write", "loop")
MASK64 = 2**64 - 1
_LOOP, _END = layout.VERB_NUMBER["loop"], layout.VERB_NUMBER["end"]


def declared_work_ns(program: Program, calibration: Calibration) -> np.ndarray:
    """Sum the `run` and `work` phases of every task."""
    rows = program.task_rows
    work_ns = np.zeros(len(rows), dtype=np.int64)
    for members in program.shapes:
        n_ops = int(rows["nr_ops"][members[0]])
        first = rows["op_first"][members].tolist()
        # Tasks may share their ops.
        place = {each: i for i, each in enumerate(dict.fromkeys(first))}
        ops = program.ops[np.array([*place])[:, None] + np.arange(n_ops)]
        work_ns[members] = _sum_ops(ops, program.values, calibration)[[place[each] for each in first]]
    return work_ns


def same_shape(rows: np.ndarray, ops: np.ndarray) -> list[np.ndarray]:
    """Group tasks whose ops are alike but for their operands."""
    # What one op must have in common, side by side, so that a task's ops are one piece of bytes.
    common = np.zeros(
        len(ops), [("verb", "u1"), ("flags", "u1"), ("slot", "<u2"), ("a", "<u4"), ("b", "<u8")]
    )
    for name in ("verb", "flags", "slot"):
        common[name] = ops[name]
    # What a unit of work costs, how much one call transfers, how often a loop goes round.
    common["a"] = np.where(_SIZED[ops["verb"]], ops["a"], 0)
    common["b"] = np.where(ops["verb"] == _LOOP, ops["b"], 0)
    data, size = common.tobytes(), common.itemsize
    groups: dict[bytes, list[int]] = {}
    for index, (first, number) in enumerate(
        zip(rows["op_first"].tolist(), rows["nr_ops"].tolist(), strict=True)
    ):
        groups.setdefault(data[first * size : (first + number) * size], []).append(index)
    return [np.array(members) for members in groups.values()]


def _sum_ops(ops: np.ndarray, values: np.ndarray, calibration: Calibration) -> np.ndarray:
    """Sum ops of equal shape; `ops` has shape (tasks, ops)."""
    total = np.zeros(len(ops), dtype=np.float64)
    exact = np.zeros(len(ops), dtype=np.uint64)
    times = [1]
    for index, verb in enumerate(ops["verb"][0].tolist()):
        op = ops[:, index]
        if verb == _LOOP:
            rounds = int(op["b"][0])
            if not rounds:
                return np.full(len(ops), -1, dtype=np.int64)
            times.append(times[-1] * rounds)
        elif verb == _END and len(times) > 1:
            times.pop()
        elif verb in (_RUN, _WORK):
            part = _executed(op, times[-1], values, verb, calibration)
            total += [float(amount) for amount in part]
            exact += np.array([amount & MASK64 for amount in part], dtype=np.uint64)
    # Beyond 2**63 the integers have wrapped; the float sum says so.
    limit = np.uint64(2**63 - 1)
    return np.where(total < 2.0**63, np.minimum(exact, limit), limit).astype(np.int64)


def _executed(
    op: np.ndarray, times: int, values: np.ndarray, verb: int, calibration: Calibration
) -> list[int]:
    """CPU time in ns of one op over all its executions, for each task."""
    unit_ps = 1000
    if verb == _WORK:
        unit_ps = calibration.unit_ps(WORK_KERNELS[int(op["a"][0]) % len(WORK_KERNELS)])
    if not op["flags"][0] & layout.OP_TABLE:
        return [amount * unit_ps // 1000 * times for amount in op["b"].tolist()]
    result = []
    for packed in op["b"].tolist():
        first, number = packed >> 32, packed & layout.NONE
        table = [amount * unit_ps // 1000 for amount in values[first : first + number].tolist()]
        cycles, rest = divmod(times, number)
        result.append(sum(table) * cycles + sum(table[:rest]))
    return result
