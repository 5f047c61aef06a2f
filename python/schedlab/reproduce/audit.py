# SPDX-License-Identifier: MIT
"""Recompute what a report publishes from its own rows, and say what does not follow.

A report's tables are CSV files, its derived figures are formulas over them, in
`experiments/report-N/`. Arithmetic is done on intervals: a published 1.262 may
have been anything from 1.2615 to 1.2625 before it was rounded, so a figure is
only called wrong where no rounding explains it.

    [[table]]     a table of `published/`: its keys, and what its columns are
    [[rows]]      holds in each row of a table: "cpu_percent" is "100 * ..."
    [[groups]]    a table whose rows are means of another table's groups
    [[repeats]]   rows that stand in one table under several keys
    [[within]]    a column of a table lies between two others
    [[spread]]    a deviation is not above its mean
    [[modes]]     a mean stands for its runs: they form no two groups, and none is far off
    [[figure]]    a number in the text: where, what, and its formula
    [[order]]     values that the text says rise, from the least to the greatest

Must stay true: published figures are kept as text, since 0.50 says more than 0.5.
Read next: experiments/report-5/audit.toml; cli/audit.py, which shows the result.
"""

from __future__ import annotations

import ast
import csv
import math
import operator
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from statistics import median

from ..errors import SpecError, SpecFault

AUDIT_FILE = "audit.toml"
SECTIONS = ("table", "rows", "groups", "repeats", "within", "spread", "modes", "figure", "order")
#: Width of the widest gap between sorted runs, over the wider of the groups that it parts,
#: which 5 % of normal samples of so many runs exceed; 300,000 draws each, docs/statistics.md.
GAP_RATIO = {5: 2.51, 10: 0.94}
#: Below this part of the mean a gap, or what one run does to the mean, changes no conclusion.
GAP_LEAST = 0.1
#: How a figure lost its last digits: to the nearest, towards 0, or one of both.
ROUNDINGS = ("nearest", "down", "any")


@dataclass(frozen=True)
class Range:
    """A number known to lie within bounds.

    Attributes
    ----------
    low, high : float
        Both ends are possible.
    """

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

    Parameters
    ----------
    text : str
        As printed, without its unit.
    rounding : str, default "nearest"
        `"nearest"`; `"down"` where a program cuts digits off; `"any"`.

    Returns
    -------
    Range
        In the unit of the text; not below 0 where no sign is printed.

    Raises
    ------
    ValueError
        If it is no number, or there is no such rounding.

    Examples
    --------
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
    """A published table.

    Attributes
    ----------
    name : str
        Of its file.
    keys : tuple of str
        Columns that name a row.
    rows : dict of tuple to dict
        Printed texts by column, by key.
    exact : frozenset of str
        Columns that are counts, and so were not rounded.
    """

    name: str
    keys: tuple[str, ...]
    rows: dict[tuple[str, ...], dict[str, str]]
    exact: frozenset[str] = frozenset()

    def number(self, key: tuple[str, ...], column: str) -> Range:
        """A cell."""
        text = self.rows[key][column]
        if column in self.exact:
            return Range(float(text), float(text))
        return published_range(text)


@dataclass(frozen=True)
class Finding:
    """One derived figure, recomputed.

    Attributes
    ----------
    report : int
        1 to 5.
    where : str
        In the report.
    text : str
        What it says.
    published : str
        The figure as printed, with its unit.
    recomputed : Range or None
        What follows from the report's own rows, in the same unit; None where
        nothing is computed.
    follows : bool
        Whether rounding explains all of the difference.
    kind : str
        Section of `audit.toml` that it came from.
    note : str
        What a reader should know; may be empty.
    table, key : str, tuple of str
        The row that it was found in; empty where it is in no single row.
    unit : str
        Of `recomputed`; empty where it has none, or the report prints none.
    """

    report: int
    where: str
    text: str
    published: str
    recomputed: Range | None
    follows: bool
    kind: str
    note: str = ""
    table: str = ""
    key: tuple[str, ...] = ()
    unit: str = ""

    def as_json(self) -> dict:
        """All of it, bounds as numbers."""
        is_number = self.recomputed is not None and math.isfinite(self.recomputed.middle)
        low, high = (self.recomputed.low, self.recomputed.high) if is_number else (None, None)
        return {
            "report": self.report, "where": self.where, "text": self.text,
            "published": self.published, "low": low, "high": high,
            "follows": self.follows, "kind": self.kind, "note": self.note, "unit": self.unit,
        }  # fmt: skip


@dataclass
class Audit:
    """All derived figures of a report.

    Attributes
    ----------
    report : int
        1 to 5.
    findings : list of Finding
        Those that follow and those that do not, in the order of the file.
    """

    report: int
    findings: list[Finding] = field(default_factory=list)

    @property
    def wrong(self) -> list[Finding]:
        """Figures that do not follow from the report's own rows."""
        return [finding for finding in self.findings if not finding.follows]


# ---- formulas --------------------------------------------------------------

_OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}  # fmt: skip


def _mean(values: Sequence[Range]) -> Range:
    """Of numbers each known to lie within bounds."""
    return Range(sum(v.low for v in values) / len(values), sum(v.high for v in values) / len(values))


def _least(values: Sequence[Range]) -> Range:
    return Range(min(v.low for v in values), min(v.high for v in values))


def _greatest(values: Sequence[Range]) -> Range:
    return Range(max(v.low for v in values), max(v.high for v in values))


def _median(values: Sequence[Range]) -> Range:
    """Each end by itself: the median never falls where a value rises."""
    return Range(median(v.low for v in values), median(v.high for v in values))


_FUNCTIONS = {"mean": _mean, "median": _median, "min": _least, "max": _greatest,
              "sum": lambda values: Range(sum(v.low for v in values), sum(v.high for v in values))}  # fmt: skip


class Formula:
    """An expression over cells: `100 * (throughput["MLFQ", "io"] / 2 - 1)`.

    Parameters
    ----------
    text : str
        Numbers, `+ - * / **`, names, `mean`, `median`, `min`, `max` and `sum`. `name` is a
        column of the row at hand; `table[key, ..., "column"]` is a cell, where
        `...` as a key stands for all of them.

    Raises
    ------
    ValueError
        If it is anything else.
    """

    def __init__(self, text: str):
        self.text = text
        try:
            self._tree = ast.parse(text, mode="eval").body
        except SyntaxError as error:
            raise ValueError(f"'{text}' is no formula: {error.msg}") from error

    def value(self, tables: Mapping[str, Table], row: Mapping[str, Range] | None = None) -> Range:
        """The formula's value.

        Parameters
        ----------
        tables : mapping of str to Table
            What names before `[` mean.
        row : mapping of str to Range, optional
            What other names mean.

        Returns
        -------
        Range
            With all that rounding leaves open.
        """
        return self._value(self._tree, tables, row or {})

    @property
    def cell(self) -> tuple[str, tuple[str, ...], str] | None:
        """Table, key and column, where the formula is one cell and nothing else."""
        node = self._tree
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            return None
        parts = [part.value for part in getattr(node.slice, "elts", [node.slice]) if isinstance(part, ast.Constant)]
        return None if ... in parts else (node.value.id, tuple(map(str, parts[:-1])), str(parts[-1]))

    def _value(self, node: ast.expr, tables, row) -> Range:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return Range(float(node.value), float(node.value))
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = (self._value(side, tables, row) for side in (node.left, node.right))
            return _OPERATORS[type(node.op)](left, right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._value(node.operand, tables, row)
        if isinstance(node, ast.Name) and node.id in row:
            return row[node.id]
        if isinstance(node, ast.Subscript):
            cells = self._cells(node, tables)
            if len(cells) == 1:
                return cells[0]
            raise ValueError(f"'{ast.unparse(node)}' is {len(cells)} cells; take their mean, median, min, max or sum")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            values = [cell for part in node.args for cell in self._all(part, tables, row)]
            return _FUNCTIONS[node.func.id](values)
        raise ValueError(f"'{ast.unparse(node)}' means nothing here, in '{self.text}'")

    def _all(self, node: ast.expr, tables, row) -> list[Range]:
        return self._cells(node, tables) if isinstance(node, ast.Subscript) else [self._value(node, tables, row)]

    def _cells(self, node: ast.Subscript, tables) -> list[Range]:
        """Cells of `table[key, ..., "column"]`."""
        if not isinstance(node.value, ast.Name) or node.value.id not in tables:
            raise ValueError(f"there is no table '{ast.unparse(node.value)}'; there are {', '.join(tables)}")
        table = tables[node.value.id]
        parts = [str(part.value) if part.value is not ... else None
                 for part in getattr(node.slice, "elts", [node.slice]) if isinstance(part, ast.Constant)]  # fmt: skip
        *key, column = parts
        if len(key) != len(table.keys):
            raise ValueError(f"'{ast.unparse(node)}': a row of {table.name} has the keys {', '.join(table.keys)}")
        found = [table.number(name, column) for name, cells in table.rows.items()
                 if column in cells and all(k is None or k == n for k, n in zip(key, name, strict=True))]  # fmt: skip
        if not found:
            raise ValueError(f"'{ast.unparse(node)}' is in no row of {table.name}")
        return found


# ---- the file --------------------------------------------------------------


def audit_report(folder: Path) -> Audit:
    """Recompute every derived figure of a report.

    Parameters
    ----------
    folder : pathlib.Path
        `experiments/report-N`, with `audit.toml` and `published/`.

    Returns
    -------
    Audit
        A finding per derived figure.

    Raises
    ------
    SpecError
        With the place of what `audit.toml` says wrong.
    """
    path = folder / AUDIT_FILE
    number = int(folder.name.rpartition("-")[2])
    try:
        spec = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # not there, not UTF-8, or no TOML
        raise SpecError([SpecFault(str(path), None, "", str(error))]) from error
    unknown = set(spec) - set(SECTIONS)
    if unknown:
        raise SpecError([SpecFault(str(path), None, "", f"unknown sections {sorted(unknown)}")])
    misshapen = [kind for kind, entries in spec.items()
                 if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries)]  # fmt: skip
    if misshapen:
        raise SpecError([SpecFault(str(path), None, kind, f"must be written as [[{kind}]]") for kind in misshapen])
    result = Audit(number)
    tables: dict[str, Table] = {}
    for kind in SECTIONS:
        for i, entry in enumerate(spec.get(kind, []), start=1):
            try:
                if kind == "table":
                    table = read_table(folder / "published", entry)
                    tables[table.name] = table
                else:
                    # What one [[repeats]] has found, another one of fewer columns finds again.
                    known = {(found.table, found.key) for found in result.findings if found.kind == "repeats"}
                    result.findings += [found for found in _AUDITORS[kind](number, entry, tables)
                                        if kind != "repeats" or (found.table, found.key) not in known]  # fmt: skip
            except (KeyError, ValueError, OSError, ArithmeticError, TypeError) as error:
                problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                raise SpecError([SpecFault(str(path), None, f"{kind} {i}", problem)]) from error
    return result


def mean_groups(folder: Path) -> dict[str, dict]:
    """Read which tables are means of which.

    Parameters
    ----------
    folder : pathlib.Path
        `experiments/report-N`.

    Returns
    -------
    dict of str to dict
        The `[[groups]]` of its `audit.toml`, by the table that holds the means.
    """
    spec = tomllib.loads((folder / AUDIT_FILE).read_text(encoding="utf-8"))
    return {entry["table"]: entry for entry in spec.get("groups", [])}


def samples_behind(groups: Mapping[str, dict], tables: Mapping[str, Table], formula: str) -> list[float]:
    """Find the rows that a published mean was computed from.

    Parameters
    ----------
    groups : mapping of str to dict
        What `mean_groups` returned.
    tables : mapping of str to Table
        The report's own.
    formula : str
        A cell, such as `means["FIFO", "cpu", 5, "wall_s"]`.

    Returns
    -------
    list of float
        In the cell's unit; empty where the report does not publish them.
    """
    cell = Formula(formula).cell
    return _behind(groups, tables, *cell) if cell and cell[0] in groups else []


def _behind(groups: Mapping, tables: Mapping[str, Table], name: str, key: tuple[str, ...], column: str) -> list[float]:
    """The rows behind a cell, and behind those if they are means too."""
    table, entry = tables[name], groups.get(name)
    if entry is None:
        return [table.number(key, column).middle]
    columns = {new: (old, text) for new, old, text in entry.get("columns", ())}
    old, text = columns.get(column, (column, "x"))
    numbers = {part: Range(float(value), float(value))
               for part, value in zip(table.keys, key, strict=True) if _is_number(value)}  # fmt: skip
    rows = [row for row in tables[entry["of"]].rows if row[: len(key)] == key]
    behind = [value for row in rows for value in _behind(groups, tables, entry["of"], row, old)]
    return [Formula(text).value(tables, {"x": Range(value, value), **numbers}).middle for value in behind]


def read_table(folder: Path, entry: Mapping) -> Table:
    """Read a published table.

    Parameters
    ----------
    folder : pathlib.Path
        Where its CSV file is.
    entry : mapping
        `name`, `keys`, and `exact`, the columns that are counts.

    Returns
    -------
    Table
        Its cells as printed.

    Raises
    ------
    ValueError
        If two rows have one key.
    """
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    with open(folder / f"{entry['name']}.csv", newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            key = tuple(line.pop(name) for name in entry["keys"])
            if key in rows:
                raise ValueError(f"{entry['name']}.csv: two rows are called {', '.join(key)}")
            rows[key] = {column: text for column, text in line.items() if text}
    return Table(entry["name"], tuple(entry["keys"]), rows, frozenset(entry.get("exact", ())))


def _figures(report: int, entry: Mapping, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """A number in the text."""
    value = Formula(entry["value"]).value(tables)
    said = published_range(entry["published"], rounding=entry.get("rounding", "nearest"))
    margin = float(entry.get("margin", 0))
    follows = value.meets(Range(said.low - margin, said.high + margin))
    shown = entry.get("shown") or f"{entry['published']} {entry.get('unit', '')}".strip()
    yield Finding(report, entry["where"], entry["text"], shown, value, follows, "figure", entry.get("note", ""),
                  unit=entry.get("unit", ""))  # fmt: skip


def _rows(report: int, entry: Mapping, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """A column that follows from others in the same row."""
    table, column, formula = tables[entry["table"]], entry["column"], Formula(entry["value"])
    for key, cells in table.rows.items():
        row = {name: table.number(key, name) for name in cells if _is_number(cells[name])}
        value = formula.value(tables, row)
        follows = value.meets(published_range(cells[column], rounding=entry.get("rounding", "nearest")))
        yield Finding(report, f"{entry['where']}, {' '.join(key)}", entry["text"],
                      f"{cells[column]} {entry.get('unit', '')}".strip(), value, follows, "rows",
                      entry.get("note", ""), table.name, key, entry.get("unit", ""))  # fmt: skip


def _groups(report: int, entry: Mapping, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """Each cell of a table is the mean of a group of another one's rows."""
    table, source = tables[entry["table"]], tables[entry["of"]]
    scale = {new: (old, Formula(text)) for new, old, text in entry.get("columns", ())}
    for key, cells in table.rows.items():
        mine = [name for name in source.rows if name[: len(key)] == key]
        if not mine:
            raise ValueError(f"{source.name} has no rows of {' '.join(key)}")
        for column, text in cells.items():
            old, formula = scale.get(column, (column, Formula("x")))
            mean = _mean([source.number(name, old) for name in mine])
            key_numbers = {name: Range(float(part), float(part))
                           for name, part in zip(table.keys, key, strict=True) if _is_number(part)}  # fmt: skip
            value = formula.value(tables, {"x": mean, **key_numbers})
            follows = value.meets(published_range(text, rounding=entry.get("rounding", "nearest")))
            yield Finding(report, f"{entry['where']}, {' '.join(key)}, {column}", entry["text"], text,
                          value, follows, "groups", entry.get("note", ""), table.name, key)  # fmt: skip


def _repeats(report: int, entry: Mapping, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """Rows that agree in several columns that chance does not make agree."""
    table, columns = tables[entry["table"]], entry["columns"]
    least = entry["at_least"]
    seen: dict[tuple[str, ...], tuple[str, ...]] = {}
    for key, cells in table.rows.items():
        texts = tuple(cells[column] for column in columns)
        # Digits tell: a row of small numbers may well come twice.
        if sum(len(text.strip("0.")) for text in texts) < least:
            continue
        first = seen.setdefault(texts, key)
        if first != key:
            yield Finding(report, f"{entry['where']}, {' '.join(key)}", entry["text"], ", ".join(texts),
                          None, False, "repeats", f"the same as {' '.join(first)}", table.name, key)  # fmt: skip


def _within(report: int, entry: Mapping, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """A column that two others bound."""
    table = tables[entry["table"]]
    for key, cells in table.rows.items():
        value, low, high = (table.number(key, entry[name]) for name in ("column", "low", "high"))
        follows = low.low <= value.high and value.low <= high.high
        yield Finding(report, f"{entry['where']}, {' '.join(key)}", entry["text"], cells[entry["column"]],
                      Range(low.low, high.high), follows, "within", entry.get("note", ""), table.name, key)  # fmt: skip


def _spread(report: int, entry: Mapping, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """A mean of what cannot be negative says little where its deviation is larger."""
    table = tables[entry["table"]]
    for key, cells in table.rows.items():
        mean, deviation = (table.number(key, entry[name]) for name in ("mean", "deviation"))
        follows = deviation.low <= mean.high
        published = f"{cells[entry['mean']]} +- {cells[entry['deviation']]}"
        yield Finding(report, f"{entry['where']}, {' '.join(key)}", entry["text"], published,
                      deviation / mean, follows, "spread", "" if follows else entry.get("note", ""), table.name, key)  # fmt: skip


def _modes(report: int, entry: Mapping, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """A mean of two kinds of runs is what none of them takes."""
    table = tables[entry["table"]]
    nr_keys = len(table.keys) - 1  # the last one numbers the runs
    for column in entry["columns"]:
        groups: dict[tuple[str, ...], list[float]] = {}
        for key in table.rows:
            groups.setdefault(key[:nr_keys], []).append(table.number(key, column).middle)
        for key, values in groups.items():
            doubt = _two_groups(values)
            mean = sum(values) / len(values)
            yield Finding(report, f"{entry['where']}, {' '.join(key)}, {column}", entry["text"], f"mean {mean:,.4g}",
                          Range(min(values), max(values)), not doubt, "modes", doubt)  # fmt: skip


def _two_groups(values: Sequence[float]) -> str:
    """What the mean of some runs hides, in words; empty where it hides nothing.

    The runs are parted at their widest gap. It counts if chance seldom makes one as wide, and
    if it matters: two groups by a tenth of the mean, a single run if it moves the mean from
    the median by as much.
    """
    ordered = sorted(values)
    if len(ordered) not in GAP_RATIO:
        raise ValueError(f"{len(ordered)} runs of a kind; the width of a gap is known for {', '.join(map(str, GAP_RATIO))}")
    size, at = max((high - low, place) for place, (low, high) in enumerate(zip(ordered, ordered[1:], strict=False), 1))
    low, high = ordered[:at], ordered[at:]
    mean = sum(ordered) / len(ordered)
    is_wide = size > GAP_RATIO[len(ordered)] * max(low[-1] - low[0], high[-1] - high[0])
    if min(len(low), len(high)) > 1:
        is_wide = is_wide and size > GAP_LEAST * abs(mean)
        return (f"two kinds of runs: {len(low)} of {low[0]:,g} to {low[-1]:,g}, {len(high)} of {high[0]:,g} to "
                f"{high[-1]:,g}") if is_wide else ""  # fmt: skip
    lone, rest = (low[0], high) if len(low) == 1 else (high[0], low)
    is_moved = abs(mean - median(ordered)) > GAP_LEAST * abs(mean)
    return f"one run of {lone:,g}, the others {rest[0]:,g} to {rest[-1]:,g}" if is_wide and is_moved else ""


def _order(report: int, entry: Mapping, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """Values that are said to rise; each is held against the next."""
    values = [Formula(text).value(tables) for text in entry["values"]]
    follows = all(a.low <= b.high for a, b in zip(values, values[1:], strict=False))
    shown = " < ".join(f"{value.middle:.6g}" for value in values)
    difference = values[-1] - values[0]
    yield Finding(report, entry["where"], entry["text"], shown, difference, follows, "order",
                  entry.get("note", ""))  # fmt: skip


def _is_number(text: str) -> bool:
    """Whether a cell holds one."""
    try:
        float(text)
    except ValueError:
        return False
    return True


_AUDITORS: dict[str, Callable] = {
    "rows": _rows, "groups": _groups, "repeats": _repeats, "within": _within, "spread": _spread,
    "modes": _modes, "figure": _figures, "order": _order,
}  # fmt: skip
