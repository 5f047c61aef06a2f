# SPDX-License-Identifier: MIT
"""Read an experiment: what a report asked and claimed, what is run, and what decides.

        experiments/report-N/experiment.toml   question, set-up, sets of runs, tables to redraw
                            /claims.toml       a row per claim, with the test that decides it
                            /audit.toml        see audit.py
                            /published/*.csv   the report's own tables

experiments/README.md explains every key, for people who add a report.

Must stay true: a mistake is reported with its file, its place and the nearest right
word before anything runs; no verdict can be written into these files.
Read next: formula.py, the expressions; steps.py, which runs them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schedlab.errors import SpecError, did_you_mean
from schedlab.hosts.choose import HOST_NAMES, why_no_option
from schedlab.model import OPTIONS, Execution, Machine, read_options
from schedlab.toml_file import Source, Spot, read_source

from .formula import HERE, Measure

EXPERIMENT_FILE, CLAIMS_FILE = "experiment.toml", "claims.toml"
SIDES = ("above", "below", "equal")
PARTS = {"claim": "What the report claims", "left-out": "What the report left out, done here"}
#: How far a measured figure may be from the published one: a factor of 1.25.
WITHIN = 0.25
#: How far from no effect still counts as none, where a claim says "the same".
MARGIN = 0.05
#: How far from no effect counts as one. Two runs of a deterministic host differ by a
#: millionth as surely as by a half, and an interval alone calls both a difference.
MINIMUM = 0.01


@dataclass(frozen=True)
class Size:
    """How much of a set is run."""

    seeds: int = 1  #: Seeds, from 1 on; of a program of the kernel, its runs.
    scale: float = 1.0  #: What the numbers in `Runs.scaled` are multiplied by.
    skip: bool = False  #: Whether the set is left out, unless its host is asked for.


@dataclass(frozen=True)
class Runs:
    """A set of runs: workloads under policies on one host."""

    #: `name`, `title`: In expressions and folders; for people.
    name: str
    title: str
    policies: Mapping[str, str]  #: By the report's name: ours, with knobs, such as `"mlfq rotate=1"`.
    #: `quick`, `full`: How much is run.
    quick: Size
    full: Size
    #: By short name; of a program, the arguments that `{workload}` stands for.
    workloads: Mapping[str, str] = field(default_factory=dict)
    program: str = ""  #: A program of the teaching kernel, which does its own work `{runs}` times.
    arguments: tuple[str, ...] = ()  #: Of a program: further boot arguments of the kernel, `NAME=VALUE`.
    #: `machine`, `execution`: As the options of `schedlab run`.
    machine: Machine = field(default_factory=Machine)
    execution: Execution = field(default_factory=Execution)
    #: On Linux: whether real-time tasks are limited to a part of each second, as they are by default.
    rt_throttling: bool = True
    #: Numbers that stand as `{NAME}` in workloads, at scale 1.
    scaled: Mapping[str, float] = field(default_factory=dict)

    def size(self, *, is_quick: bool) -> Size:
        """How much of it is run."""
        return self.quick if is_quick else self.full

    @property
    def host(self) -> str:
        """Where."""
        return self.execution.host


@dataclass(frozen=True)
class Claim:
    """One row of `claims.toml`."""

    name: str  #: Its `id`.
    #: `text`, `where`, `measure`, `unit`, `note`, `stated`: What is claimed, in our words; where; what the
    #: number is; its unit; what a reader should know; the figure as the report prints it.
    text: str
    where: str
    measure: str
    ours: Measure | None  #: The expression over our runs.
    on: tuple[str, ...]  #: Sets of runs that it is tested on.
    unit: str = ""
    note: str = ""
    stated: str = ""
    published: str = ""  #: Formula over the published tables, or a number; empty: no figure.
    #: Value of no effect: 1 of a ratio, 0 of a difference. None: the claim is of the number alone.
    null: float | None = None
    #: `"above"`, `"below"` or `"equal"`, against `null`; empty: what the published figure says.
    says: str = ""
    within: float = WITHIN  #: The published figure is met up to this part.
    margin: float = MARGIN  #: How far from `null` is still equal, in the unit of the expression.
    minimum: float = MINIMUM  #: How far from `null` is above or below, in the same unit.
    part: str = "claim"  #: `"claim"`, or `"left-out"` of what the report did not do.
    lacks: str = ""  #: What is missing to test it at all; empty: nothing.
    #: Smallest step of the report's instrument, in the unit of the claim: a number, or an expression over our
    #: runs; 0: not stated.
    resolution: float | Measure = 0.0
    #: Further statements of the report that follow from the same fact: `where`, `text` and, where it gives
    #: one, the figure as `stated`.
    also: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Redrawn:
    """A table or chart of the report, to be drawn beside ours."""

    kind: str  #: `"table"`: a value per row and column; `"box"`: a distribution per row.
    #: `where`, `title`, `unit`, `note`: In the report; for people.
    where: str
    title: str
    #: `rows`, `columns`: What `{row}` and `{column}` stand for.
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    #: `ours`, `published`: Expressions with `{row}` and `{column}`; `published` may be empty.
    ours: str
    on: tuple[str, ...]  #: Sets of runs.
    published: str = ""
    unit: str = ""
    note: str = ""
    is_log: bool = False  #: Whether its chart has a logarithmic axis.
    is_shared: bool = False  #: Whether all sources are drawn in one scale, however far apart they are.
    is_folded: bool = False  #: Whether a reader unfolds it.
    #: `rows_are`, `columns_are`: What the rows and the columns are, such as `"scheduler"` and `"processes"`.
    rows_are: str = ""
    columns_are: str = ""


@dataclass(frozen=True)
class Experiment:
    """A report as an experiment."""

    report: int  #: 1 to 5.
    folder: Path  #: Where it is written down.
    #: `title`, `source`, `question`, `concludes`: For people; `source` is whose report it is, `concludes`
    #: what it concludes.
    title: str
    source: str
    question: str
    #: `setup`, `done`: Paragraphs: the set-up as the report describes it, and what is run here.
    setup: tuple[str, ...]
    done: tuple[str, ...]
    runs: Mapping[str, Runs]  #: By name, in their order.
    claims: tuple[Claim, ...]  #: In their order.
    redrawn: tuple[Redrawn, ...]  #: In their order.
    concludes: str = ""
    #: The set of runs that claims are decided on, named before anything is run; empty: none is.
    primary: str = ""
    primary_why: str = ""  #: Why that one, in a sentence.
    #: Sets whose distance from the published numbers is compared, the primary among them.
    candidates: tuple[str, ...] = ()

    def decided_on(self, claim: Claim) -> str:
        """The set of runs that decides a claim: the primary, or the first that it names where it lacks that one."""
        return self.primary if self.primary in claim.on else next(iter(claim.on), "")


class _Entry(Spot):
    """One TOML table that is read key by key; what is left over is an error."""

    def __init__(self, source: Source, at: Sequence[str | int], place: str, values: Mapping[str, Any]):
        super().__init__(source, tuple(at), place)
        self._values = dict(values)
        self._known: list[str] = []

    def below(self, place: str, values: Mapping[str, Any], *at: str | int) -> _Entry:
        """A table within this one."""
        return _Entry(self.source, (*self.at, *at), place, values)

    def take(self, key: str, kind: type, default: Any = None) -> Any:
        """Value of a key; without a default it must be there."""
        self._known.append(key)
        value = self._values.pop(key, None)
        if value is None:
            if default is None:
                self.fault(f"{key} is missing")
                return kind()
            return default
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.fault(f"{key} must be a {kind.__name__} (got {value!r})")
            return kind() if default is None else default
        return value

    def given(self, keys: Iterable[str]) -> dict[str, object]:
        """Values of those keys that are there."""
        wanted = [*keys]
        self._known += wanted
        return {key: self._values.pop(key) for key in wanted if key in self._values}

    def texts(self, key: str, default: Any = None) -> tuple[str, ...]:
        """A list of texts."""
        found = self.take(key, list, default)
        if not all(isinstance(each, str) for each in found):
            self.fault(f"{key} must be a list of texts (got {found!r})")
            return ()
        return tuple(found)

    def one_of(self, key: str, known: Collection[str], default: str | None = None) -> str:
        """A text that is one of those known."""
        found = self.take(key, str, default)
        if found not in known and found != default:
            self.fault(f"{key} = '{found}' is none of {', '.join(known)}{did_you_mean(found, known)}")
        return found

    def done(self) -> None:
        """Complain about keys that nobody asked for."""
        for key in self._values:
            self.fault(f"unknown key '{key}'{did_you_mean(key, self._known)}", key)


def read_experiment(folder: Path) -> Experiment:
    """Read a report's experiment and its claims."""
    source, claims = (
        read_experiment_file(folder / EXPERIMENT_FILE),
        read_experiment_file(folder / CLAIMS_FILE),
    )
    take_misshapen(source, ("experiment", "runs", "table", "box"), single=("experiment",))
    take_misshapen(claims, ("claim",))
    spec = source.values
    head = _Entry(source, ("experiment",), "[experiment]", spec.get("experiment", {}))
    runs: dict[str, Runs] = {}
    for number, values in enumerate(spec.get("runs", []), 1):
        entry = _Entry(source, ("runs", number - 1), f"[[runs]] {number} ({values.get('name', '?')})", values)
        each = _read_runs(entry)
        if each.name in runs:
            entry.fault(f"'{each.name}' is there twice", "name")
        runs[each.name] = each
    names = (head.take("rows_are", str, ""), head.take("columns_are", str, ""))
    experiment = Experiment(
        report=int(folder.name.rpartition("-")[2]),
        folder=folder,
        title=head.take("title", str),
        source=head.take("source", str),
        question=head.take("question", str),
        setup=_paragraphs(head.take("setup", str)),
        done=_paragraphs(head.take("done", str)),
        runs=runs,
        concludes=" ".join(head.take("concludes", str, "").split()),
        **_read_primary(head, runs),
        claims=_read_claims(claims, runs),
        redrawn=tuple(
            _read_redrawn(
                kind, _Entry(source, (kind, number - 1), f"[[{kind}]] {number}", values), runs, names
            )
            for kind in ("table", "box")
            for number, values in enumerate(spec.get(kind, []), 1)
        ),
    )
    head.done()
    if faults := source.faults + claims.faults:
        raise SpecError(sorted(faults, key=lambda fault: (fault.file != source.name, fault.line or 0)))
    return experiment


def read_experiment_file(file: Path) -> Source:
    """A TOML file of an experiment."""
    return read_source(file, parse_float=float, hint="experiments/README.md says what it must hold")


def take_misshapen(source: Source, known: Collection[str], *, single: Collection[str] = ()) -> None:
    """Remove sections that are not known, or no TOML tables, such as `runs = 3`; they are faults."""
    for key, value in list(source.values.items()):
        is_one = key in single
        is_table = (
            isinstance(value, dict)
            if is_one
            else isinstance(value, list) and all(isinstance(v, dict) for v in value)
        )
        if key not in known:
            source.fault((key,), "", f"unknown section '{key}'{did_you_mean(key, known)}")
        elif not is_table:
            heading = f"[{key}]" if is_one else f"[[{key}]]"
            source.fault((key,), key, f"must be written as {heading} (got {value!r:.60})")
        else:
            continue
        del source.values[key]


def _paragraphs(text: str) -> tuple[str, ...]:
    """Text with empty lines between its paragraphs."""
    return tuple(" ".join(part.split()) for part in text.split("\n\n") if part.strip())


def _read_runs(entry: _Entry) -> Runs:
    """One `[[runs]]`."""
    runs = Runs(
        name=entry.take("name", str),
        title=entry.take("title", str),
        policies=_text_table(entry, "policies"),
        quick=_read_size(entry, "quick"),
        full=_read_size(entry, "full"),
        workloads=_text_table(entry, "workloads", {}),
        program=entry.take("program", str, ""),
        arguments=entry.texts("arguments", []),
        **_read_options(entry),
        rt_throttling=entry.take("rt_throttling", bool, True),
        scaled=entry.take("scaled", dict, {}),
    )
    if not runs.workloads:
        entry.fault("needs workloads; of a program, the arguments of each")
    if not runs.policies or not all(text.split() for text in runs.policies.values() if isinstance(text, str)):
        entry.fault("policies must name at least one, and each of them")
    for name, value in runs.scaled.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
            entry.fault(f"scaled.{name} must be a number above 0 (got {value!r})")
    if not runs.rt_throttling and runs.host != "linux":
        entry.fault(f"rt_throttling is Linux's; host = '{runs.host}' must be 'linux'")
    if runs.program and runs.host != "kernel":
        entry.fault(f"program runs in the teaching kernel; host = '{runs.host}' must be 'kernel'")
    for words in runs.arguments:
        if not runs.program or not re.fullmatch(r"\w+=\S+", words):
            entry.fault(
                f"arguments: '{words}' must be a boot argument NAME=VALUE of the kernel, and program what it runs"
            )
    if not runs.name.replace("-", "_").isidentifier():
        entry.fault(f"name = '{runs.name}' must be a word, as expressions use it")
    entry.done()
    return runs


def _read_options(entry: _Entry) -> dict[str, Any]:
    """Options of `schedlab run`, by their words in Python; a set without a host has none to run on."""
    words = entry.given(option.word for option in OPTIONS.values() if option.word != "host")
    machine, execution, problems = read_options(words | {"host": entry.one_of("host", HOST_NAMES) or "sim"})
    flags = {option.flag: option.word for option in OPTIONS.values()}
    for problem in problems + why_no_option(machine, execution):
        entry.fault(problem, flags.get(problem.split()[0].rstrip(":"), "host"))
    return {"machine": machine, "execution": execution}


def _text_table(entry: _Entry, key: str, default: Any = None) -> dict[str, str]:
    """A table of texts."""
    found = entry.take(key, dict, default)
    for name, value in found.items():
        if not isinstance(value, str):
            entry.fault(f"{key}.{name} must be a text (got {value!r})")
    return found


def _read_size(entry: _Entry, key: str) -> Size:
    """`quick` or `full` of a set."""
    inner = entry.below(f"{entry.place}.{key}", entry.take(key, dict), key)
    size = Size(
        seeds=inner.take("seeds", int, 1),
        scale=inner.take("scale", float, 1.0),
        skip=inner.take("skip", bool, False),
    )
    inner.done()
    if size.seeds < 1 or not 0 < size.scale < math.inf:
        inner.fault(f"seeds must be at least 1 and scale above 0 (got {size.seeds}, {size.scale:g})")
    return size


def _read_on(entry: _Entry, runs: Mapping[str, Runs], *, is_needed: bool = True) -> tuple[str, ...]:
    """Names of sets of runs; all of them where none is named."""
    on = entry.texts("on", list(runs) if is_needed else [])
    for name in on:
        if name not in runs:
            entry.fault(f"on: there is no set of runs '{name}'{did_you_mean(name, runs)}")
    return on


def _read_primary(head: _Entry, runs: Mapping[str, Runs]) -> dict[str, Any]:
    """The set that decides, why, and those that it was chosen from."""
    primary, why = head.take("primary", str, ""), " ".join(head.take("primary_why", str, "").split())
    candidates = head.texts("candidates", [])
    for name in (*([primary] if primary else []), *candidates):
        if name not in runs:
            head.fault(f"primary, candidates: there is no set of runs '{name}'{did_you_mean(name, runs)}")
    if primary and not why:
        head.fault(f"primary = '{primary}' needs primary_why, a sentence that says why this set decides")
    if candidates and primary not in candidates:
        head.fault(f"candidates must have the primary, '{primary}', among them")
    return {"primary": primary, "primary_why": why, "candidates": candidates}


def _measure(entry: _Entry, text: str, runs: Mapping[str, Runs], key: str = "ours") -> Measure | None:
    """An expression over our runs."""
    try:
        return Measure(text, sets=tuple(runs))
    except ValueError as error:
        entry.fault(f"{key}: {error}")
        return None


def _resolution(entry: _Entry, runs: Mapping[str, Runs]) -> float | Measure:
    """The smallest step of the report's instrument: a number, or an expression over our runs."""
    found = entry.take("resolution", object, 0.0)
    if isinstance(found, str):
        return _measure(entry, found, runs, key="resolution") or 0.0
    if (
        isinstance(found, bool)
        or not isinstance(found, int | float)
        or not (math.isfinite(found) and found >= 0)
    ):
        entry.fault(f"resolution must be a number, 0 or more, or an expression over runs (got {found!r})")
        return 0.0
    return float(found)


def _read_also(entry: _Entry) -> tuple[Mapping[str, str], ...]:
    """Further places of the report that say what the claim says."""
    found = entry.take("also", list, [])
    for each in found:
        if not isinstance(each, dict) or not {"where", "text"} <= each.keys() <= {"where", "text", "stated"}:
            entry.fault(f"also must be a list of tables with where, text and perhaps stated (got {each!r})")
            return ()
    return tuple(found)


def _read_claims(source: Source, runs: Mapping[str, Runs]) -> tuple[Claim, ...]:
    """All rows of `claims.toml`."""
    claims: dict[str, Claim] = {}
    for number, values in enumerate(source.values.get("claim", []), 1):
        entry = _Entry(source, ("claim", number - 1), f"[[claim]] {number} ({values.get('id', '?')})", values)
        lacks = entry.take("lacks", str, "")
        needed = "" if lacks else None
        text = entry.take("ours", str, needed)
        null = entry.take("null", float, float("nan"))
        claim = Claim(
            name=entry.take("id", str),
            text=" ".join(entry.take("text", str).split()),
            where=entry.take("where", str),
            measure=entry.take("measure", str, needed),
            ours=_measure(entry, text, runs) if text else None,
            on=_read_on(entry, runs, is_needed=not lacks),
            unit=entry.take("unit", str, ""),
            note=" ".join(entry.take("note", str, "").split()),
            stated=entry.take("stated", str, ""),
            published=entry.take("published", str, ""),
            null=None if null != null else null,
            says=entry.one_of("says", SIDES, ""),
            within=entry.take("within", float, WITHIN),
            margin=entry.take("margin", float, MARGIN),
            minimum=entry.take("minimum", float, MINIMUM),
            part=entry.one_of("part", tuple(PARTS), "claim"),
            lacks=lacks,
            resolution=_resolution(entry, runs),
            also=_read_also(entry),
        )
        entry.done()
        if claim.name in claims:
            entry.fault(f"id '{claim.name}' is there twice")
        _check_claim(entry, claim, runs)
        claims[claim.name] = claim
    return tuple(claims.values())


def _check_claim(entry: _Entry, claim: Claim, runs: Mapping[str, Runs]) -> None:
    """What a claim's keys must be together, before hours of runs go into it."""
    if not claim.name.replace("-", "_").isidentifier():
        entry.fault(f"id = '{claim.name}' must be a word, as links use it")
    for key in ("within", "margin", "minimum", "null"):
        value = getattr(claim, key)
        if value is not None and not (math.isfinite(value) and (value >= 0 or key == "null")):
            entry.fault(f"{key} = {value:g} must be a number{'' if key == 'null' else ', 0 or more'}")
    if claim.lacks:
        return
    if claim.says and claim.null is None:
        entry.fault(
            f"says = '{claim.says}' needs null, the value of no effect: 1 of a ratio, 0 of a difference"
        )
    if not claim.published and not claim.says:
        entry.fault("nothing decides it: give published, says, or both")
    if not claim.on:
        entry.fault("on names no set of runs; leave it out for all of them")
    for key, measure in (("ours", claim.ours), ("resolution", claim.resolution)):
        for name, (workload, policy, *_) in measure.cells if isinstance(measure, Measure) else ():
            for on in claim.on if name == HERE else (name,):
                if on not in runs:
                    continue  # said already
                for what, word, known in (
                    ("workload", workload, runs[on].workloads),
                    ("policy", policy, runs[on].policies),
                ):
                    if word not in known:
                        entry.fault(f"{key}: '{on}' has no {what} '{word}'{did_you_mean(word, known)}")


def _read_redrawn(kind: str, entry: _Entry, runs: Mapping[str, Runs], names: tuple[str, str]) -> Redrawn:
    """One `[[table]]` or `[[box]]`; `names` is what its rows and columns are unless it says so."""
    redrawn = Redrawn(
        kind=kind,
        where=entry.take("where", str),
        title=entry.take("title", str),
        rows=entry.texts("rows"),
        columns=entry.texts("columns", [""] if kind == "box" else None),
        ours=entry.take("ours", str),
        on=_read_on(entry, runs),
        published=entry.take("published", str, ""),
        unit=entry.take("unit", str, ""),
        note=" ".join(entry.take("note", str, "").split()),
        is_log=entry.take("log", bool, False),
        is_shared=entry.take("shared", bool, False),
        is_folded=entry.take("folded", bool, False),
        rows_are=entry.take("rows_are", str, names[0]),
        columns_are=entry.take("columns_are", str, names[1]),
    )
    for row in redrawn.rows[:1]:
        for column in redrawn.columns[:1]:
            _measure(entry, fill(redrawn.ours, row, column), runs)
    entry.done()
    return redrawn


def fill(text: str, row: str, column: str) -> str:
    """Put a row and a column into an expression.

    >>> fill("response['{row}', '{column}']", "RR", "cpu")
    "response['RR', 'cpu']"
    """
    return text.replace("{row}", row).replace("{column}", column)
