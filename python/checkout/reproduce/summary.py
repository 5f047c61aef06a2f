# SPDX-License-Identifier: MIT
"""What a reader has after a minute: sentences with numbers in them, and one picture.

`summary.toml` of an experiment has the sentences; every number in them is a name in
braces, which `[numbers]` defines as a formula over the published tables or as an
expression over runs. A sentence may state conditions on numbers (`when`); where one
is not met by the whole interval, or where a number is missing, the sentence is not
written. So no sentence outlives the numbers that it was written for.

        main    one or two sentences: what the main conclusion came to, and why
        answer  three to five: number and cause
        well    what the author did well
        change  what to change

Invariant: no digit of a measured number stands in a sentence; it is filled in here.
Read next: page.py and replication.py, which write the sentences; experiments/README.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from schedlab.stats.inference import Interval, mean_interval

from .claims import measure_on
from .formula import HERE, Measure, MissingError
from .published import Formula, Range, Table
from .reproduction import Reproduction
from .spec import Runs, _Entry, read_experiment_file
from .text import number_text

SUMMARY_FILE = "summary.toml"
KINDS = ("main", "answer", "well", "change")
_NAME = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
_CONDITION = re.compile(r"(\w+) (above|below) (-?[\d.]+)")


@dataclass(frozen=True)
class Sentence:
    """A sentence, and what must be true for it."""

    text: str  #: With names of numbers in braces, such as `{ours}`, `{ours:%}` or `{ours:.1f}`.
    #: Conditions: a number, `"above"` or `"below"`, and a bound.
    when: tuple[tuple[str, str, float], ...] = ()


@dataclass(frozen=True)
class Bar:
    """A group of the picture: the report's bar and ours."""

    label: str  #: Its name on the axis.
    published: str  #: Formula over the published tables; empty: the report has none.
    ours: Measure | None  #: Expression over runs.


@dataclass(frozen=True)
class Picture:
    """The report's bars beside ours."""

    #: `title`, `unit`, `note`: For people.
    title: str
    unit: str
    note: str
    bars: tuple[Bar, ...]  #: In their order.
    on: tuple[str, ...]  #: Sets that `run` stands for; those that were run have a bar each.
    is_log: bool = False  #: Whether a logarithmic axis is asked for.


@dataclass(frozen=True)
class Summary:
    """All of `summary.toml`."""

    sentences: Mapping[str, tuple[Sentence, ...]]  #: By kind, one of `KINDS`.
    numbers: Mapping[str, Measure | Formula]  #: By name.
    picture: Picture | None  #: The picture.

    @property
    def measures(self) -> list[tuple[Measure, tuple[str, ...]]]:
        """Expressions over runs that it needs, with the sets that `run` stands for."""
        found: list[tuple[Measure, tuple[str, ...]]] = [
            (number, ()) for number in self.numbers.values() if isinstance(number, Measure)
        ]
        if self.picture:
            found += [(bar.ours, self.picture.on) for bar in self.picture.bars if bar.ours]
        return found


def read_summary(folder: Path, runs: Mapping[str, Runs], tables: Mapping[str, Table]) -> Summary:
    """Read the summary of an experiment."""
    file = folder / SUMMARY_FILE
    if not file.is_file():
        return Summary({}, {}, None)
    source = read_experiment_file(file)
    entry = _Entry(source, (), "", source.values)
    numbers: dict[str, Measure | Formula] = {}
    for name, text in entry.take("numbers", dict, {}).items():
        if number := _number(entry, f"numbers.{name}", text, runs, tables):
            numbers[name] = number
    sentences = {
        kind: tuple(
            _sentence(entry, kind, index, each, numbers)
            for index, each in enumerate(entry.take(kind, list, []))
        )
        for kind in KINDS
    }
    spec = entry.take("picture", dict, {})
    picture = _picture(entry.below("[picture]", spec, "picture"), runs, tables) if spec else None
    entry.done()
    source.check()
    return Summary(sentences, numbers, picture)


def _number(
    entry: _Entry, place: str, text: Any, runs: Mapping[str, Runs], tables: Mapping[str, Table]
) -> Measure | Formula | None:
    """A formula over tables, or an expression over runs of sets by their names."""
    try:
        sets = {name.replace("-", "_") for name in runs}
        if re.search(rf"\b(?:{'|'.join(sets)})\[", text):
            measure = Measure(text, sets=tuple(runs))
            for name, (workload, policy, *_) in measure.cells:
                if name == HERE or workload not in runs[name].workloads or policy not in runs[name].policies:
                    raise ValueError(f"'{name}' has no runs of '{workload}' under '{policy}'")
            return measure
        formula = Formula(text)
        formula.value(tables)
        return formula
    except (ValueError, TypeError, ArithmeticError) as error:
        entry.fault(f"{place}: {error}")
        return None


def _sentence(entry: _Entry, kind: str, index: int, given: Any, numbers: Mapping[str, Any]) -> Sentence:
    """A sentence: a text, or `{text = ..., when = [...]}`."""
    if not isinstance(given, str | dict):
        entry.fault(f"{kind}: a sentence must be a text or {{text = ..., when = [...]}} (got {given!r})")
        given = ""
    spec = entry.below(kind, {"text": given} if isinstance(given, str) else given, kind, index)
    text, when = spec.take("text", str), spec.texts("when", [])
    spec.done()
    conditions = []
    for condition in when:
        match = _CONDITION.fullmatch(condition)
        if not match or match[1] not in numbers:
            entry.fault(
                f"{kind}: when = '{condition}' must be written as 'NUMBER above 1.5' or 'NUMBER below 1.5'"
            )
            continue
        conditions.append((match[1], match[2], float(match[3])))
    for match in _NAME.finditer(text):
        if match[1] not in numbers:
            entry.fault(f"{kind}: there is no number '{match[1]}' in [numbers]")
    return Sentence(" ".join(text.split()), tuple(conditions))


def _picture(entry: _Entry, runs: Mapping[str, Runs], tables: Mapping[str, Table]) -> Picture:
    """`[picture]`."""
    bars = []
    for given in entry.take("bars", list):
        bar = entry.below("[picture] bars", given if isinstance(given, dict) else {})
        label, published, text = (
            bar.take("label", str),
            bar.take("published", str, ""),
            bar.take("ours", str, ""),
        )
        bar.done()
        ours = None
        try:
            if published:
                Formula(published).value(tables)
            ours = Measure(text, sets=tuple(runs)) if text else None
        except (ValueError, ArithmeticError) as error:
            bar.fault(f"'{label}': {error}")
        bars.append(Bar(label, published, ours))
    picture = Picture(
        entry.take("title", str),
        entry.take("unit", str),
        entry.take("note", str, ""),
        tuple(bars),
        entry.texts("on"),
        entry.take("log", bool, False),
    )
    for name in picture.on:
        if name not in runs:
            entry.fault(f"on: there is no set of runs '{name}'")
    entry.done()
    return picture


# ---- filling in --------------------------------------------------------------


def sentences_of(made: Reproduction, kind: str) -> tuple[list[str], int]:
    """The sentences of a kind that the numbers of a reproduction allow."""
    summary, found, n_missing = summary_of(made), [], 0
    for sentence in summary.sentences.get(kind, ()):
        names = {name for name, *_ in sentence.when} | {name for name, _ in _NAME.findall(sentence.text)}
        try:
            values = {name: _value(made, summary, name) for name in names}
        except MissingError:
            n_missing += 1
            continue
        if all(_is_met(values[name], side, bound) for name, side, bound in sentence.when):
            found.append(_NAME.sub(partial(_in_place, values), sentence.text))
    return found, n_missing


def summary_of(made: Reproduction) -> Summary:
    """The summary of a report that was reproduced."""
    return read_summary(made.experiment.folder, made.experiment.runs, made.tables)


def _value(made: Reproduction, summary: Summary, name: str) -> Range | Interval:
    """A number by its name."""
    number = summary.numbers[name]
    if isinstance(number, Formula):
        return number.value(made.tables)
    sample = measure_on(number, HERE, made.samples)
    return mean_interval(sample.values, minimum=sample.minimum)


def _in_place(values: Mapping[str, Range | Interval], match: re.Match[str]) -> str:
    """What stands where a sentence names a number."""
    return _written(values[match[1]], match[2])


def _is_met(value: Range | Interval, side: str, bound: float) -> bool:
    """Whether the whole interval of a number lies on a side of a bound."""
    return value.low > bound if side == "above" else value.high < bound


def _written(value: Range | Interval, form: str | None) -> str:
    """A number in a sentence."""
    middle = value.middle if isinstance(value, Range) else value.estimate
    if form == "%":
        return f"{number_text(100 * middle, 3)} %"
    return format(middle, form) if form else number_text(middle, 3)
