# SPDX-License-Identifier: MIT
"""Expressions over our own runs: one number per seed, from tables that runs leave.

        run["io", "MLFQ", "makespan_ns"] / run["io", "RR", "makespan_ns"]

`run` is the set of runs at hand; the name of another set (`-` written as `_`) may
stand in its place. A cell is addressed by workload, policy and metric, and, for
what is measured per task, by the tasks' names. All cells of an expression are
paired by seed, so a ratio is computed within each seed.

Must stay true: a seed that one cell lacks is left out of all of them, and that is said.
Read next: samples.py, which finds the cells.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedlab.errors import SchedlabError, did_you_mean

#: What the arithmetic of Python's grammar does, here and in published.py.
OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": lambda values: np.minimum.reduce(values),
    "max": lambda values: np.maximum.reduce(values),
    "mean": lambda values: np.mean(values, axis=0),
    "median": lambda values: np.median(values, axis=0),
    "sum": lambda values: np.sum(values, axis=0),
    "abs": lambda values: np.abs(values[0]),
    # One of them for all seeds: of two that chance alone tells apart, the lower of each seed is
    # lower than either, and whoever is compared with that seems worse.
    "lowest_mean": lambda values: min(values, key=np.mean),
    "highest_mean": lambda values: max(values, key=np.mean),
    # Of all seeds together: how far each is from their mean, and between which two all lie.
    "deviation": lambda values: np.abs(values[0] - np.mean(values[0])),
    "lowest": lambda values: np.min(values[0]),
    "highest": lambda values: np.max(values[0]),
}
#: What stands for the set of runs at hand.
HERE = "run"


class MissingError(SchedlabError):
    """A cell has no number; the text says why, as a reason for a verdict."""


@dataclass(frozen=True)
class Cell:
    """The numbers of one cell."""

    values: Mapping[int, float]  #: By seed.
    folders: Mapping[int, str]  #: Of the runs that they come from, by seed.


@dataclass(frozen=True)
class Sample:
    """What an expression comes to, seed by seed."""

    values: tuple[float, ...]  #: shape (n_seeds,): in the expression's own unit.
    seeds: tuple[int, ...]  #: shape (n_seeds,): ascending.
    runs: tuple[tuple[str, ...], ...]  #: shape (n_seeds,): folders of the runs that each of them comes from.
    n_left_out: int = 0  #: Seeds that some cells have and others lack.
    #: The minimum of a value: 0 where nothing is subtracted, since no cell is negative; else minus infinity.
    minimum: float = -math.inf

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders of all runs that went in, each once."""
        return tuple(dict.fromkeys(folder for mine in self.runs for folder in mine))


class Measure:
    """An expression, checked.

    `text` has numbers, `+ - * / **`, cells, and `min`, `max`, `mean`, `median`, `sum`, `abs` of
    expressions, seed by seed; that one of several whose mean over all seeds is the `lowest_mean` or the
    `highest_mean`; and, of one expression over all seeds, its `deviation` (of each from their mean),
    `lowest` and `highest`. `sets` are the names of the sets of runs there are. Anything else is a
    ValueError, with the nearest right word.

    >>> Measure('run["io", "RR", "makespan_ns"] / 1e6', sets=["sim-1"]).cells
    [('run', ('io', 'RR', 'makespan_ns'))]
    """

    def __init__(self, text: str, *, sets: Sequence[str]):
        self.text = text
        self._names = {HERE: HERE} | {name.replace("-", "_"): name for name in sets}
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise ValueError(f"'{text}' is no expression: {error.msg}") from error
        #: Cells that it needs: set of runs, and keys.
        self.cells: list[tuple[str, tuple[str, ...]]] = []
        self._collect(self._tree)
        if not self.cells:
            raise ValueError(f'\'{text}\' has no cell, such as run["WORKLOAD", "POLICY", "METRIC"]')

    def _collect(self, node: ast.expr) -> None:
        """Find all cells, and refuse what is none of the grammar."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            self._collect(node.left)
            self._collect(node.right)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            self._collect(node.operand)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id not in _FUNCTIONS:
                raise ValueError(
                    f"there is no function '{node.func.id}'{did_you_mean(node.func.id, _FUNCTIONS)}"
                )
            for part in node.args:
                self._collect(part)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            self.cells.append(self._cell(node))
        else:
            raise ValueError(f"'{ast.unparse(node)}' means nothing here, in '{self.text}'")

    def _cell(self, node: ast.Subscript) -> tuple[str, tuple[str, ...]]:
        """Set and keys of a cell."""
        name = node.value.id  # type: ignore[attr-defined]
        if name not in self._names:
            raise ValueError(f"there is no set of runs '{name}'{did_you_mean(name, self._names)}")
        parts = getattr(node.slice, "elts", [node.slice])
        keys: tuple[Any, ...] = tuple(part.value for part in parts if isinstance(part, ast.Constant))
        if len(keys) != len(parts) or len(keys) not in (3, 4) or not all(isinstance(k, str) for k in keys):
            raise ValueError(
                f"'{ast.unparse(node)}' must have the keys workload, policy, metric "
                "and, of tasks, a name, all in quotes"
            )
        return self._names[name], keys

    def sample(self, look_up: Callable[[str, tuple[str, ...]], Cell]) -> Sample:
        """Compute it for every seed."""
        cells = {cell: look_up(*cell) for cell in dict.fromkeys(self.cells)}
        common = set.intersection(*({*cell.values} for cell in cells.values()))
        every = set.union(*({*cell.values} for cell in cells.values()))
        if not common:
            raise MissingError("no seed has a good run of everything that is compared")
        seeds = sorted(common)
        arrays = {key: np.array([cell.values[seed] for seed in seeds], float) for key, cell in cells.items()}
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.broadcast_to(self._value(self._tree, arrays), len(seeds))
        if not np.isfinite(values).all():
            raise MissingError("the expression divides by 0")
        runs = tuple(tuple(dict.fromkeys(cell.folders[seed] for cell in cells.values())) for seed in seeds)
        return Sample(
            tuple(map(float, values)), tuple(seeds), runs, len(every) - len(common), _least(self._tree)
        )

    def _value(self, node: ast.expr, arrays: Mapping[Any, Any]) -> Any:
        if isinstance(node, ast.Constant):
            return float(node.value)  # type: ignore[arg-type]
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](self._value(node.left, arrays), self._value(node.right, arrays))
        if isinstance(node, ast.UnaryOp):
            return -self._value(node.operand, arrays)
        if isinstance(node, ast.Subscript):
            return arrays[self._cell(node)]
        size = len(next(iter(arrays.values())))
        parts = [np.broadcast_to(self._value(part, arrays), size) for part in node.args]  # type: ignore[attr-defined]
        return _FUNCTIONS[node.func.id](parts)  # type: ignore[attr-defined]


def _least(node: ast.AST) -> float:
    """The minimum of an expression, as far as its form says."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("abs", "deviation")
    ):
        return 0.0
    if (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)) or isinstance(node, ast.UnaryOp):
        return -math.inf
    parts = (
        [node.left, node.right]
        if isinstance(node, ast.BinOp)
        else node.args
        if isinstance(node, ast.Call)
        else []
    )
    return min(map(_least, parts), default=0.0)
