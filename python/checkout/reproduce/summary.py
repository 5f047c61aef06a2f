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
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo
from pydantic.dataclasses import dataclass

from schedlab.stats.inference import Interval, mean_interval
from schedlab.toml_file import Spot

from .claims import measure_on
from .formula import HERE, Measure, MissingError
from .published import Formula, Range, Table
from .reproduction import Reproduction
from .spec import FROM_FILE, Expression, Line, Runs, Sets, Truth, read_at, read_experiment_file
from .text import number_text

SUMMARY_FILE = "summary.toml"
KINDS = ("main", "answer", "well", "change")
_NAME = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
_CONDITION = re.compile(r"(\w+) (above|below) (-?[\d.]+)")


def _sentence(given: object) -> object:
    """A sentence without conditions is a text."""
    if not isinstance(given, str | dict):
        raise ValueError(f"a sentence must be a text or {{text = ..., when = [...]}} (got {given!r})")
    return {"text": given} if isinstance(given, str) else given


def _condition(given: object) -> object:
    match = _CONDITION.fullmatch(given) if isinstance(given, str) else None
    if not match:
        raise ValueError(f"{given!r} must be written as 'NUMBER above 1.5' or 'NUMBER below 1.5'")
    return match[1], match[2], float(match[3])


def _number(text: object, info: ValidationInfo) -> object:
    """A formula over tables, or an expression over runs of sets by their names."""
    context = info.context or {}
    runs = context["runs"]
    sets = "|".join(name.replace("-", "_") for name in runs)
    if not isinstance(text, str) or not re.search(rf"\b(?:{sets})\[", text):
        return Formula(_of_tables(text, info))
    measure = Measure(text, sets=tuple(runs))
    for name, (workload, policy, *_) in measure.cells:
        if name == HERE or workload not in runs[name].workloads or policy not in runs[name].policies:
            raise ValueError(f"'{name}' has no runs of '{workload}' under '{policy}'")
    return measure


def _of_tables(text: object, info: ValidationInfo) -> str:
    """A formula over the published tables that has a value, or nothing."""
    if not isinstance(text, str):
        raise ValueError(f"must be a formula (got {text!r})")
    try:
        if text:
            Formula(text).value((info.context or {})["tables"])
    except ArithmeticError as error:
        raise ValueError(str(error)) from error
    return text


@dataclass(frozen=True, config=FROM_FILE)
class Sentence:
    """A sentence, and what must be true for it."""

    text: Line  #: With names of numbers in braces, such as `{ours}`, `{ours:%}` or `{ours:.1f}`.
    #: Conditions: a number, `"above"` or `"below"`, and a bound.
    when: tuple[Annotated[tuple[str, str, float], BeforeValidator(_condition)], ...] = ()


@dataclass(frozen=True, config=FROM_FILE)
class Bar:
    """A group of the picture: the report's bar and ours."""

    label: str  #: Its name on the axis.
    #: Formula over the published tables; empty: the report has none.
    published: Annotated[str, BeforeValidator(_of_tables)] = ""
    ours: Expression = None  #: Expression over runs.


@dataclass(frozen=True, config=FROM_FILE)
class Picture:
    """The report's bars beside ours."""

    #: `title`, `unit`, `note`: For people.
    title: str
    unit: str
    bars: tuple[Bar, ...]  #: In their order.
    on: Sets  #: Sets that `run` stands for; those that were run have a bar each.
    note: str = ""
    is_log: Annotated[Truth, Field(alias="log")] = False  #: Whether a logarithmic axis is asked for.


Sentences = tuple[Annotated[Sentence, BeforeValidator(_sentence)], ...]


@dataclass(frozen=True, config=FROM_FILE)
class Summary:
    """All of `summary.toml`."""

    #: `main`, `answer`, `well`, `change`: Sentences, as above.
    main: Sentences = ()
    answer: Sentences = ()
    well: Sentences = ()
    change: Sentences = ()
    #: By name.
    numbers: Mapping[str, Annotated[Measure | Formula, BeforeValidator(_number)]] = field(
        default_factory=dict
    )
    picture: Picture | None = None  #: The picture.

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
        return Summary()
    source = read_experiment_file(file)
    summary = read_at(Spot(source, (), ""), Summary, source.values, runs=runs, tables=tables) or Summary()
    for kind in KINDS:
        for index, sentence in enumerate(getattr(summary, kind)):
            named = [name for name, *_ in sentence.when] + [name for name, _ in _NAME.findall(sentence.text)]
            for name in named:
                if name not in summary.numbers:
                    source.fault((kind, index), kind, f"there is no number '{name}' in [numbers]")
    source.check()
    return summary


# ---- filling in --------------------------------------------------------------


def sentences_of(made: Reproduction, kind: str) -> tuple[list[str], int]:
    """The sentences of a kind that the numbers of a reproduction allow."""
    summary, found, n_missing = summary_of(made), [], 0
    for sentence in getattr(summary, kind):
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
