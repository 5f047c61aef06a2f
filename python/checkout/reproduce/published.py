# SPDX-License-Identifier: MIT
"""A report's published tables, and formulas over them.

A cell is kept as it was printed, since 0.50 says more than 0.5, and stands for all numbers that
may have been printed so: a published 1.262 was anything from 1.2615 to 1.2625. Arithmetic is
done on such intervals. A comparison is 1 where every number of both intervals makes it true,
0 where none does, and from 0 to 1 where rounding leaves it open.

Invariant: no formula reads anything but the tables and the numbers that it is given.
Read next: audit.py, which holds a report's text against its tables.
"""

from __future__ import annotations

import ast
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from statistics import median
from typing import Any

from .formula import OPERATORS

#: How a figure lost its last digits: to the nearest, towards 0, or one of both.
ROUNDINGS = ("nearest", "down", "any")


@dataclass(frozen=True)
class Range:
    """A number known to lie within bounds."""

    #: `low`, `high`: Both ends are possible.
    low: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Range) -> Range:
        return Range(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Range) -> Range:
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Range(min(ends), max(ends))

    def __truediv__(self, other: Range) -> Range:
        if other.low <= 0 <= other.high:
            return Range(float("-inf"), float("inf"))
        ends = [a / b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Range(min(ends), max(ends))

    def __pow__(self, other: Range) -> Range:
        """Of what is not negative, by a number that is known."""
        if self.low < 0 or other.low != other.high:
            raise ValueError("** is for numbers that are not negative, with a known exponent")
        return Range(self.low**other.low, self.high**other.low)

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low)

    def meets(self, other: Range) -> bool:
        """Whether some number lies in both, up to the last bit of a float."""
        slack = 1e-9 * max(abs(self.low), abs(self.high), 1e-12)
        return self.low <= other.high + slack and other.low <= self.high + slack

    @property
    def middle(self) -> float:
        """Half-way between the ends."""
        return (self.low + self.high) / 2


def published_range(text: str, *, rounding: str = "nearest") -> Range:
    """What a printed number may have been before it was rounded.

    >>> published_range("1.26")
    Range(low=1.255, high=1.265)
    >>> published_range("98", rounding="down")
    Range(low=98.0, high=99.0)
    >>> published_range("0.0"), published_range("-0.0")
    (Range(low=0.0, high=0.05), Range(low=-0.05, high=0.05))
    """
    if rounding not in ROUNDINGS:
        raise ValueError(f"rounding = {rounding!r}; known: {', '.join(ROUNDINGS)}")
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation as error:
        raise ValueError(f"'{text}' is no number") from error
    step = Decimal(1).scaleb(int(number.as_tuple().exponent))
    below = {"nearest": step / 2, "down": Decimal(0), "any": step}[rounding]
    above = step / 2 if rounding == "nearest" else step
    low = number - below
    return Range(float(low if text.lstrip().startswith("-") else max(low, Decimal(0))), float(number + above))


@dataclass(frozen=True)
class Table:
    """A published table."""

    name: str  #: Of its file.
    keys: tuple[str, ...]  #: Columns that name a row.
    rows: dict[tuple[str, ...], dict[str, str]]  #: Printed texts by column, by key.
    exact: frozenset[str] = frozenset()  #: Columns that are counts, and so were not rounded.

    def number(self, key: tuple[str, ...], column: str) -> Range:
        """A cell."""
        text = self.rows[key][column]
        if column in self.exact:
            return Range(float(text), float(text))
        return published_range(text)


def read_table(folder: Path, entry: Mapping[str, Any]) -> Table:
    """Read a published table."""
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    with open(folder / f"{entry['name']}.csv", newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            key = tuple(line.pop(name) for name in entry["keys"])
            if key in rows:
                raise ValueError(f"{entry['name']}.csv: two rows are called {', '.join(key)}")
            rows[key] = {column: text for column, text in line.items() if text}
    return Table(entry["name"], tuple(entry["keys"]), rows, frozenset(entry.get("exact", ())))


# ---- formulas --------------------------------------------------------------


def mean_of(values: Sequence[Range]) -> Range:
    """Of numbers each known to lie within bounds."""
    return Range(sum(v.low for v in values) / len(values), sum(v.high for v in values) / len(values))


def _minimum(values: Sequence[Range]) -> Range:
    return Range(min(v.low for v in values), min(v.high for v in values))


def _maximum(values: Sequence[Range]) -> Range:
    return Range(max(v.low for v in values), max(v.high for v in values))


def _median(values: Sequence[Range]) -> Range:
    """Each end by itself: the median never falls where a value rises."""
    return Range(median(v.low for v in values), median(v.high for v in values))


_FUNCTIONS = {"mean": mean_of, "median": _median, "min": _minimum, "max": _maximum,
              "sum": lambda values: Range(sum(v.low for v in values), sum(v.high for v in values))}  # fmt: skip
_SIGNS: dict[type, str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "=="}
#: Up to so many cells of a minimum or maximum are shown one by one.
MANY_CELLS = 6


def _compare(sign: str, left: Range, right: Range) -> Range:
    """How much of a comparison rounding leaves open: 1 is true, 0 is false."""
    if sign == "==":
        is_possible = left.meets(right)
        return Range(
            float(is_possible and left.low == left.high == right.low == right.high), float(is_possible)
        )
    if sign in (">", ">="):
        left, right = right, left
    if sign in ("<=", ">="):
        return Range(float(left.high <= right.low), float(left.low <= right.high or left.meets(right)))
    return Range(float(left.high < right.low), float(left.low < right.high))


class Formula:
    """An expression over cells: `100 * (throughput["MLFQ", "io"] / 2 - 1)`.

    `text` has numbers, `+ - * / **`, names, `mean`, `median`, `min`, `max` and `sum`, comparisons (`< <= >
    >= ==`, also several in a row) and `and`. `name` is a column of the row at hand, or a number that was
    given; `table[key, ..., "column"]` is a cell, where `...` as a key stands for all of them. A sum of
    comparisons is how many are true. Anything else is a ValueError.
    """

    def __init__(self, text: str):
        self.text = text
        try:
            self._tree = ast.parse(" ".join(text.split()), mode="eval").body
        except SyntaxError as error:
            raise ValueError(f"'{text}' is no formula: {error.msg}") from error

    def value(self, tables: Mapping[str, Table], row: Mapping[str, Range] | None = None) -> Range:
        """The formula's value."""
        return self._value(self._tree, tables, row or {})

    @property
    def cell(self) -> tuple[str, tuple[str, ...], str] | None:
        """Table, key and column, where the formula is one cell and nothing else."""
        node = self._tree
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            return None
        parts = [
            part.value for part in getattr(node.slice, "elts", [node.slice]) if isinstance(part, ast.Constant)
        ]
        return None if ... in parts else (node.value.id, tuple(map(str, parts[:-1])), str(parts[-1]))

    def _value(self, node: ast.expr, tables: Mapping[str, Table], row: Any) -> Range:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return Range(float(node.value), float(node.value))
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            left, right = (self._value(side, tables, row) for side in (node.left, node.right))
            return OPERATORS[type(node.op)](left, right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._value(node.operand, tables, row)
        if isinstance(node, ast.Compare) and all(type(sign) in _SIGNS for sign in node.ops):
            values = [self._value(side, tables, row) for side in (node.left, *node.comparators)]
            return _minimum(
                [
                    _compare(_SIGNS[type(sign)], left, right)
                    for sign, left, right in zip(node.ops, values, values[1:], strict=False)
                ]
            )
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            return _minimum([self._value(part, tables, row) for part in node.values])
        if isinstance(node, ast.Name) and node.id in row:
            return row[node.id]
        if isinstance(node, ast.Subscript):
            cells = self._cells(node, tables)
            if len(cells) == 1:
                return cells[0]
            raise ValueError(
                f"'{ast.unparse(node)}' is {len(cells)} cells; take their mean, median, min, max or sum"
            )
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            values = [cell for part in node.args for cell in self._all(part, tables, row)]
            return _FUNCTIONS[node.func.id](values)  # type: ignore[no-untyped-call]
        raise ValueError(f"'{ast.unparse(node)}' means nothing here, in '{self.text}'")

    @property
    def is_comparison(self) -> bool:
        """Whether it is true or false, and no number."""
        return isinstance(self._tree, ast.Compare | ast.BoolOp)

    def compared(self, tables: Mapping[str, Table], row: Mapping[str, Range] | None = None) -> str:
        """Write a comparison with its numbers in place of its cells."""
        cells = [
            cell
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Subscript)
            for cell in self._found(node, tables)
        ]
        parts = [(table.name, *key, column) for table, key, column in cells]
        is_alike = len({len(part) for part in parts}) == 1
        varying = (
            [i for i in range(len(parts[0])) if len({part[i] for part in parts}) > 1]
            if parts and is_alike
            else []
        )

        def cell_text(table: Table, key: tuple[str, ...], column: str) -> str:
            words = [
                table.name,
                *(
                    f"{name} {part}:" if is_number(part) else part
                    for name, part in zip(table.keys, key, strict=True)
                ),
                column,
            ]
            names = [words[i] for i in varying] if is_alike else words
            return " ".join([*names, table.rows[key][column]])

        def side(node: ast.expr) -> str:
            inner = (
                node.args
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("min", "max")
                else [node]
            )
            found = [
                cell
                for part in inner
                if isinstance(part, ast.Subscript)
                for cell in self._found(part, tables)
            ]
            if found and len(found) <= MANY_CELLS and all(isinstance(part, ast.Subscript) for part in inner):
                return ", ".join(cell_text(*cell) for cell in found)
            middle = self._value(node, tables, row or {}).middle
            return f"{middle:.0f}" if middle == round(middle) else f"{middle:.4g}"

        nodes = self._tree.values if isinstance(self._tree, ast.BoolOp) else [self._tree]
        return "; ".join(
            " ".join(
                [
                    side(node.left),
                    *(
                        f"{_SIGNS[type(sign)]} {side(part)}"
                        for sign, part in zip(node.ops, node.comparators, strict=True)
                    ),
                ]
            )
            for node in nodes
            if isinstance(node, ast.Compare)
        )

    def _all(self, node: ast.expr, tables: Mapping[str, Table], row: Any) -> list[Range]:
        return (
            self._cells(node, tables) if isinstance(node, ast.Subscript) else [self._value(node, tables, row)]
        )

    def _cells(self, node: ast.Subscript, tables: Mapping[str, Table]) -> list[Range]:
        """Numbers of `table[key, ..., "column"]`."""
        return [table.number(key, column) for table, key, column in self._found(node, tables)]

    def _found(
        self, node: ast.Subscript, tables: Mapping[str, Table]
    ) -> list[tuple[Table, tuple[str, ...], str]]:
        """Cells of `table[key, ..., "column"]`."""
        if not isinstance(node.value, ast.Name) or node.value.id not in tables:
            raise ValueError(f"there is no table '{ast.unparse(node.value)}'; there are {', '.join(tables)}")
        table = tables[node.value.id]
        parts = [
            str(part.value) if part.value is not ... else None
            for part in getattr(node.slice, "elts", [node.slice])
            if isinstance(part, ast.Constant)
        ]
        *key, column = parts
        if len(key) != len(table.keys):
            raise ValueError(
                f"'{ast.unparse(node)}': a row of {table.name} has the keys {', '.join(table.keys)}"
            )
        found = [
            (table, name, column)
            for name, cells in table.rows.items()
            if column in cells and all(k is None or k == n for k, n in zip(key, name, strict=True))
        ]
        if not found:
            raise ValueError(f"'{ast.unparse(node)}' is in no row of {table.name}")
        return found


def is_number(text: str) -> bool:
    """Whether a cell holds one."""
    try:
        float(text)
    except ValueError:
        return False
    return True
