# SPDX-License-Identifier: MIT
"""Hold a report against itself: what it derives and says, against its own tables.

`experiments/report-N/audit.toml` has a section per form of check, each check of one of four kinds,
which are counted apart:

    arithmetic  a derived number, computed anew
    [[rows]]      in each row of a table: "cpu_percent" is "100 * ..."
    [[groups]]    a table whose rows are means of another table's groups
    [[figure]]    a number in the text: where, what, and its formula

    prose       a comparison or superlative of the text
    [[prose]]     where, what, and the comparison of cells that it claims

    relation    what must hold between columns or tables, whatever was measured
    [[relation]]  a comparison: a time in the system is at most the time of the test
    [[within]]    a column of a table lies between two others

    samples     whether a mean stands for its runs
    [[repeats]]   rows that stand in one table under several keys
    [[spread]]    a deviation is not above its mean
    [[modes]]     the runs form no two groups, and none is far off

and [[table]], which names a file of `published/`, its keys, and what its columns are. A check with
`each = {word = [...]}` is made once for each of the words that stand as `{word}` in its texts.
A check fails only where no rounding explains the difference.

Invariant: a finding is computed from the report's own numbers; no result is written down.
Read next: published.py, the tables and formulas; experiments/report-5/audit.toml;
show_audit.py, which shows the result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from schedlab.errors import SpecError, did_you_mean

from .published import Formula, Range, Table, is_number, mean_of, published_range, read_table
from .spec import read_experiment_file, take_misshapen

AUDIT_FILE = "audit.toml"
#: Kinds of checks; what one and what several of them are called.
KINDS = {
    "arithmetic": ("derived number", "derived numbers"),
    "prose": ("comparison in the text", "comparisons in the text"),
    "relation": ("relation between columns or tables", "relations between columns or tables"),
    "samples": ("check of samples", "checks of samples"),
}
_KIND_OF = {
    "rows": "arithmetic", "groups": "arithmetic", "figure": "arithmetic", "prose": "prose",
    "relation": "relation", "within": "relation", "repeats": "samples", "spread": "samples", "modes": "samples",
}  # fmt: skip
SECTIONS = ("table", *_KIND_OF)
#: What an entry of each section may have, besides what all checks may.
_KEYS = {
    "table": "name keys exact", "rows": "table column value rounding unit", "groups": "table of columns rounding",
    "figure": "value published given rounding margin shown unit", "prose": "claim given table",
    "relation": "claim given table", "within": "table column low high", "repeats": "table columns at_least",
    "spread": "table mean deviation", "modes": "table columns",
}  # fmt: skip
_OF_EACH_CHECK = "where text note each"
#: Width of the widest gap between sorted runs, over the wider of the groups that it parts,
#: which 5 % of normal samples of so many runs exceed; 300,000 draws each, docs/statistics.md.
GAP_RATIO = {5: 2.51, 10: 0.94}
#: Below this part of the mean a gap, or what one run does to the mean, changes no conclusion.
GAP_LEAST = 0.1


@dataclass(frozen=True)
class Finding:
    """What a check found in one place."""

    report: int  #: 1 to 5.
    where: str  #: In the report.
    text: str  #: What it says.
    published: str  #: The number as printed, with its unit; of a comparison, the numbers that it is about.
    #: What follows from the report's own rows, in the same unit; None where nothing is computed.
    recomputed: Range | None
    follows: bool  #: Whether it is so, or would be with other roundings of the same numbers.
    check: str  #: Section of `audit.toml` that it came from.
    note: str = ""  #: What a reader should know; may be empty.
    #: `table`, `key`: The row that it was found in; empty where it is in no single row.
    table: str = ""
    key: tuple[str, ...] = ()
    unit: str = ""  #: Of `recomputed`; empty where it has none, or the report prints none.

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return _KIND_OF[self.check]

    @property
    def is_comparison(self) -> bool:
        """Whether it is true or false, and no number is recomputed."""
        return self.check in ("prose", "relation")

    def as_json(self) -> dict[str, Any]:
        """All of it, bounds as numbers."""
        found = self.recomputed
        is_known = found is not None and math.isfinite(found.middle)
        low, high = (found.low, found.high) if found is not None and is_known else (None, None)
        return {
            "report": self.report, "where": self.where, "text": self.text,
            "published": self.published, "low": low, "high": high,
            "follows": self.follows, "kind": self.kind, "check": self.check, "note": self.note, "unit": self.unit,
        }  # fmt: skip


@dataclass
class Audit:
    """All checks of a report."""

    report: int  #: 1 to 5.
    #: Those that follow and those that do not, by section, each in the order of the file.
    findings: list[Finding] = field(default_factory=list)

    @property
    def wrong(self) -> list[Finding]:
        """What does not follow from the report's own rows."""
        return [finding for finding in self.findings if not finding.follows]

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """How many do not follow, of how many, by kind; kinds that are not there are left out."""
        of = {kind: [finding.follows for finding in self.findings if finding.kind == kind] for kind in KINDS}
        return {kind: (follows.count(False), len(follows)) for kind, follows in of.items() if follows}

    @property
    def sentence(self) -> str:
        """All counts in words, for terminal, page and docs/replication.md."""
        parts = [
            f"{number} of {total:,} {KINDS[kind][0 if total == 1 else 1]}"
            for kind, (number, total) in self.counts.items()
        ]
        named = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
        return f"Against its own tables, {named} do not hold."


# ---- the file --------------------------------------------------------------


def audit_report(folder: Path) -> Audit:
    """Hold a report against its own tables."""
    path = folder / AUDIT_FILE
    number = int(folder.name.rpartition("-")[2])
    source = read_experiment_file(path)
    take_misshapen(source, SECTIONS)
    source.check()
    spec = source.values
    result = Audit(number)
    tables: dict[str, Table] = {}
    for kind in SECTIONS:
        for i, entry in enumerate(spec.get(kind, []), start=1):
            try:
                known = f"{_KEYS[kind]} {'' if kind == 'table' else _OF_EACH_CHECK}".split()
                for key in entry.keys() - known:
                    raise ValueError(f"unknown key '{key}'{did_you_mean(key, known)}")
                if kind == "table":
                    table = read_table(folder / "published", entry)
                    tables[table.name] = table
                    continue
                # What one [[repeats]] has found, another one of fewer columns finds again.
                seen = {(found.table, found.key) for found in result.findings if found.check == "repeats"}
                result.findings += [
                    found
                    for one in _each(entry)
                    for found in _AUDITORS[kind](number, one, tables)
                    if kind != "repeats" or (found.table, found.key) not in seen
                ]
            except (KeyError, ValueError, OSError, ArithmeticError, TypeError) as error:
                problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                source.fault((kind, i - 1), f"{kind} {i}", problem)
                raise SpecError(source.faults) from error
    return result


def mean_groups(folder: Path) -> dict[str, dict[str, Any]]:
    """Read which tables are means of which."""
    spec = read_experiment_file(folder / AUDIT_FILE).values
    return {entry["table"]: entry for entry in spec.get("groups", [])}


def samples_behind(
    groups: Mapping[str, dict[str, Any]], tables: Mapping[str, Table], formula: str
) -> list[float]:
    """Find the rows that a published mean was computed from."""
    cell = Formula(formula).cell
    return _behind(groups, tables, *cell) if cell and cell[0] in groups else []


def _behind(
    groups: Mapping[str, Any], tables: Mapping[str, Table], name: str, key: tuple[str, ...], column: str
) -> list[float]:
    """The rows behind a cell, and behind those if they are means too."""
    table, entry = tables[name], groups.get(name)
    if entry is None:
        return [table.number(key, column).middle]
    columns = {new: (old, text) for new, old, text in entry.get("columns", ())}
    old, text = columns.get(column, (column, "x"))
    numbers = {
        part: Range(float(value), float(value))
        for part, value in zip(table.keys, key, strict=True)
        if is_number(value)
    }
    rows = [row for row in tables[entry["of"]].rows if row[: len(key)] == key]
    behind = [value for row in rows for value in _behind(groups, tables, entry["of"], row, old)]
    return [Formula(text).value(tables, {"x": Range(value, value), **numbers}).middle for value in behind]


def _each(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """One check for each combination of the words of `each`, with the words in its texts."""
    words = entry.get("each", {})
    if not all(isinstance(values, list) and values for values in words.values()):
        raise ValueError(f"each must give a list of words for every name (got {words!r})")
    for unused in (name for name in words if f"{{{name}}}" not in repr({**entry, "each": ""})):
        raise ValueError(f"each has '{unused}', but {{{unused}}} stands in no text")

    def filled(value: Any, chosen: Mapping[str, str]) -> Any:
        if isinstance(value, str):
            for name, word in chosen.items():
                value = value.replace(f"{{{name}}}", word)
        return [filled(part, chosen) for part in value] if isinstance(value, list) else value

    for combination in itertools.product(*words.values()):
        chosen = dict(zip(words, map(str, combination), strict=True))
        yield {key: filled(value, chosen) for key, value in entry.items() if key != "each"}


def _given(entry: Mapping[str, Any]) -> dict[str, Range]:
    """Numbers that a check takes from elsewhere than the tables, by name."""
    return {name: Range(float(number), float(number)) for name, number in entry.get("given", {}).items()}


def _finding(
    report: int,
    entry: Mapping[str, Any],
    check: str,
    published: str,
    recomputed: Range | None,
    follows: bool,
    *,
    table: Table | None = None,
    key: tuple[str, ...] = (),
    column: str = "",
    note: str | None = None,
    unit: str = "",
) -> Finding:
    """What an entry found, at a row and column if it is about one."""
    where = ", ".join(filter(None, (entry["where"], " ".join(key), column)))
    note = entry.get("note", "") if note is None else note
    row: dict[str, Any] = {"table": table.name, "key": key} if table else {}
    return Finding(
        report, where, entry["text"], published, recomputed, follows, check, note, **row, unit=unit
    )


def _comparisons(check: str) -> Callable[[int, Mapping[str, Any], Mapping[str, Table]], Iterator[Finding]]:
    """What the text claims, or what must hold: a comparison, of the whole or of each row of a table."""

    def found(report: int, entry: Mapping[str, Any], tables: Mapping[str, Table]) -> Iterator[Finding]:
        formula = Formula(entry["claim"])
        if not formula.is_comparison:
            raise ValueError(f"claim = '{entry['claim']}' compares nothing: it must have <, <=, >, >= or ==")
        given = _given(entry)
        table = tables[entry["table"]] if "table" in entry else None
        for key in table.rows if table else [()]:
            row = given | (
                {name: table.number(key, name) for name, text in table.rows[key].items() if is_number(text)}
                if table
                else {}
            )
            is_possible = formula.value(tables, row).high == 1
            shown = formula.compared(tables, row)
            yield _finding(report, entry, check, shown, None, is_possible, table=table, key=key)

    return found


def _figures(report: int, entry: Mapping[str, Any], tables: Mapping[str, Table]) -> Iterator[Finding]:
    """A number in the text."""
    value = Formula(entry["value"]).value(tables, _given(entry))
    said = published_range(entry["published"], rounding=entry.get("rounding", "nearest"))
    margin = float(entry.get("margin", 0))
    follows = value.meets(Range(said.low - margin, said.high + margin))
    shown = entry.get("shown") or f"{entry['published']} {entry.get('unit', '')}".strip()
    yield _finding(report, entry, "figure", shown, value, follows, unit=entry.get("unit", ""))


def _rows(report: int, entry: Mapping[str, Any], tables: Mapping[str, Table]) -> Iterator[Finding]:
    """A column that follows from others in the same row."""
    table, column, formula = tables[entry["table"]], entry["column"], Formula(entry["value"])
    for key, cells in table.rows.items():
        row = {name: table.number(key, name) for name in cells if is_number(cells[name])}
        value = formula.value(tables, row)
        follows = value.meets(published_range(cells[column], rounding=entry.get("rounding", "nearest")))
        unit = entry.get("unit", "")
        shown = f"{cells[column]} {unit}".strip()
        yield _finding(report, entry, "rows", shown, value, follows, table=table, key=key, unit=unit)


def _groups(report: int, entry: Mapping[str, Any], tables: Mapping[str, Table]) -> Iterator[Finding]:
    """Each cell of a table is the mean of a group of another one's rows."""
    table, source = tables[entry["table"]], tables[entry["of"]]
    scale = {new: (old, Formula(text)) for new, old, text in entry.get("columns", ())}
    for key, cells in table.rows.items():
        mine = [name for name in source.rows if name[: len(key)] == key]
        if not mine:
            raise ValueError(f"{source.name} has no rows of {' '.join(key)}")
        for column, text in cells.items():
            old, formula = scale.get(column, (column, Formula("x")))
            mean = mean_of([source.number(name, old) for name in mine])
            key_numbers = {
                name: Range(float(part), float(part))
                for name, part in zip(table.keys, key, strict=True)
                if is_number(part)
            }
            value = formula.value(tables, {"x": mean, **key_numbers})
            follows = value.meets(published_range(text, rounding=entry.get("rounding", "nearest")))
            yield _finding(report, entry, "groups", text, value, follows, table=table, key=key, column=column)


def _repeats(report: int, entry: Mapping[str, Any], tables: Mapping[str, Table]) -> Iterator[Finding]:
    """Rows that agree in several columns that chance does not make agree."""
    table, columns = tables[entry["table"]], entry["columns"]
    minimum = entry["at_least"]
    seen: dict[tuple[str, ...], tuple[str, ...]] = {}
    for key, cells in table.rows.items():
        texts = tuple(cells[column] for column in columns)
        # Digits tell: a row of small numbers may well come twice.
        if sum(len(text.strip("0.")) for text in texts) < minimum:
            continue
        first = seen.setdefault(texts, key)
        if first != key:
            note = f"the same as {' '.join(first)}"
            yield _finding(
                report, entry, "repeats", ", ".join(texts), None, False, table=table, key=key, note=note
            )


def _within(report: int, entry: Mapping[str, Any], tables: Mapping[str, Table]) -> Iterator[Finding]:
    """A column that two others bound."""
    table = tables[entry["table"]]
    for key, cells in table.rows.items():
        value, low, high = (table.number(key, entry[name]) for name in ("column", "low", "high"))
        follows = low.low <= value.high and value.low <= high.high
        bounds, shown = Range(low.low, high.high), cells[entry["column"]]
        yield _finding(report, entry, "within", shown, bounds, follows, table=table, key=key)


def _spread(report: int, entry: Mapping[str, Any], tables: Mapping[str, Table]) -> Iterator[Finding]:
    """A mean of what cannot be negative says little where its deviation is larger."""
    table = tables[entry["table"]]
    for key, cells in table.rows.items():
        mean, deviation = (table.number(key, entry[name]) for name in ("mean", "deviation"))
        follows = deviation.low <= mean.high
        published = f"{cells[entry['mean']]} +- {cells[entry['deviation']]}"
        note = "" if follows else entry.get("note", "")
        yield _finding(
            report, entry, "spread", published, deviation / mean, follows, table=table, key=key, note=note
        )


def _modes(report: int, entry: Mapping[str, Any], tables: Mapping[str, Table]) -> Iterator[Finding]:
    """A mean of two kinds of runs is what none of them takes."""
    table = tables[entry["table"]]
    n_keys = len(table.keys) - 1  # the last one numbers the runs
    for column in entry["columns"]:
        groups: dict[tuple[str, ...], list[float]] = {}
        for key in table.rows:
            groups.setdefault(key[:n_keys], []).append(table.number(key, column).middle)
        for key, values in groups.items():
            warning = _two_groups(values)
            mean = sum(values) / len(values)
            spread = Range(min(values), max(values))
            yield _finding(
                report,
                entry,
                "modes",
                f"mean {mean:,.4g}",
                spread,
                not warning,
                key=key,
                column=column,
                note=warning,
            )


def _two_groups(values: Sequence[float]) -> str:
    """What the mean of some runs hides, in words; empty where it hides nothing.

    The runs are parted at their widest gap. It counts if chance seldom makes one as wide, and
    if it matters: two groups by a tenth of the mean, a single run if it moves the mean from
    the median by as much.
    """
    ordered = sorted(values)
    if len(ordered) not in GAP_RATIO:
        raise ValueError(
            f"{len(ordered)} runs of a kind; the width of a gap is known for {', '.join(map(str, GAP_RATIO))}"
        )
    size, at = max((high - low, place) for place, (low, high) in enumerate(itertools.pairwise(ordered), 1))
    low, high = ordered[:at], ordered[at:]
    mean = sum(ordered) / len(ordered)
    is_wide = size > GAP_RATIO[len(ordered)] * max(low[-1] - low[0], high[-1] - high[0])
    if min(len(low), len(high)) > 1:
        is_wide = is_wide and size > GAP_LEAST * abs(mean)
        return (
            (
                f"two kinds of runs: {len(low)} of {low[0]:,g} to {low[-1]:,g}, {len(high)} of {high[0]:,g} to "
                f"{high[-1]:,g}"
            )
            if is_wide
            else ""
        )
    lone, rest = (low[0], high) if len(low) == 1 else (high[0], low)
    is_moved = abs(mean - median(ordered)) > GAP_LEAST * abs(mean)
    return f"one run of {lone:,g}, the others {rest[0]:,g} to {rest[-1]:,g}" if is_wide and is_moved else ""


_AUDITORS: dict[str, Callable[..., Any]] = {
    "rows": _rows, "groups": _groups, "repeats": _repeats, "within": _within, "spread": _spread,
    "modes": _modes, "figure": _figures, "prose": _comparisons("prose"), "relation": _comparisons("relation"),
}  # fmt: skip
