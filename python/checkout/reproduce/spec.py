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
from collections.abc import Collection, Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, Strict, ValidationInfo
from pydantic.dataclasses import dataclass

from schedlab.errors import SpecError, did_you_mean
from schedlab.hosts.choose import HOST_NAMES, why_no_option
from schedlab.model import OPTIONS, Execution, Machine, read_options
from schedlab.toml_file import Source, Spot, read_source
from schedlab.workload.tables import read_table

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
Model = TypeVar("Model")


# ---- values --------------------------------------------------------------------


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _paragraphs(text: object) -> object:
    """Text with empty lines between its paragraphs."""
    parts = text.split("\n\n") if isinstance(text, str) else text
    return tuple(_one_line(part) for part in parts if part.strip()) if isinstance(parts, list) else parts


def read_measure(text: object, info: ValidationInfo) -> object:
    """An expression over runs of the sets that there are."""
    if isinstance(text, Measure | None):
        return text
    if not isinstance(text, str):
        raise ValueError(f"must be an expression in quotes (got {text!r})")
    return Measure(text, sets=tuple((info.context or {})["runs"])) if text else None


def _resolution(found: object, info: ValidationInfo) -> object:
    if isinstance(found, str | Measure):
        return read_measure(found, info) or 0.0
    if not _is_number(found) or found < 0:  # type: ignore[operator]
        raise ValueError(f"must be a number, 0 or more, or an expression over runs (got {found!r})")
    return found


def _is_number(value: object) -> bool:
    """Whether it is a finite one."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _above_0(value: object) -> object:
    if not _is_number(value) or value <= 0:  # type: ignore[operator]
        raise ValueError(f"must be a number above 0 (got {value!r})")
    return value


def _also(found: object) -> object:
    for each in found if isinstance(found, list | tuple) else [found]:
        if not isinstance(each, dict) or not {"where", "text"} <= each.keys() <= {"where", "text", "stated"}:
            raise ValueError(f"must be a list of tables with where, text and perhaps stated (got {each!r})")
    return found


def _one_of(known: Collection[str]) -> AfterValidator:
    def check(word: str) -> str:
        if word and word not in known:
            raise ValueError(f"{word!r} is none of {', '.join(known)}{did_you_mean(word, known)}")
        return word

    return AfterValidator(check)


def _sets(names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    """Names of sets of runs that there are."""
    known = (info.context or {}).get("runs", names)
    for name in names:
        if name not in known:
            raise ValueError(f"there is no set of runs {name!r}{did_you_mean(name, known)}")
    return names


Line = Annotated[str, AfterValidator(_one_line)]
Paragraphs = Annotated[tuple[str, ...], BeforeValidator(_paragraphs)]
Number = Annotated[float, Strict()]
Truth = Annotated[bool, Strict()]
Sets = Annotated[tuple[str, ...], AfterValidator(_sets)]
#: An expression over runs; None where the file has an empty text.
Expression = Annotated[Measure | None, BeforeValidator(read_measure)]
#: What is read from a table of a file, with its lines and remedies.
FROM_FILE = ConfigDict(extra="forbid", arbitrary_types_allowed=True, populate_by_name=True)


# ---- what is read --------------------------------------------------------------


@dataclass(frozen=True, config=FROM_FILE)
class Size:
    """How much of a set is run."""

    seeds: Annotated[int, Strict()] = 1  #: Seeds, from 1 on; of a program of the kernel, its runs.
    scale: Number = 1.0  #: What the numbers in `Runs.scaled` are multiplied by.
    skip: Truth = False  #: Whether the set is left out, unless its host is asked for.


@dataclass(frozen=True, config=FROM_FILE)
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
    rt_throttling: Truth = True
    #: Numbers that stand as `{NAME}` in workloads, at scale 1.
    scaled: Mapping[str, Annotated[float, BeforeValidator(_above_0)]] = field(default_factory=dict)

    def size(self, *, is_quick: bool) -> Size:
        """How much of it is run."""
        return self.quick if is_quick else self.full

    @property
    def host(self) -> str:
        """Where."""
        return self.execution.host


@dataclass(frozen=True, config=FROM_FILE)
class Claim:
    """One row of `claims.toml`."""

    name: Annotated[str, Field(alias="id")]  #: Its `id`.
    #: `text`, `where`, `measure`, `unit`, `note`, `stated`: What is claimed, in our words; where; what the
    #: number is; its unit; what a reader should know; the figure as the report prints it.
    text: Line
    where: str
    measure: str
    ours: Expression  #: The expression over our runs.
    on: Sets  #: Sets of runs that it is tested on.
    unit: str = ""
    note: Line = ""
    stated: str = ""
    published: str = ""  #: Formula over the published tables, or a number; empty: no figure.
    #: Value of no effect: 1 of a ratio, 0 of a difference. None: the claim is of the number alone.
    null: Number | None = None
    #: `"above"`, `"below"` or `"equal"`, against `null`; empty: what the published figure says.
    says: Annotated[str, _one_of(SIDES)] = ""
    within: Number = WITHIN  #: The published figure is met up to this part.
    margin: Number = MARGIN  #: How far from `null` is still equal, in the unit of the expression.
    minimum: Number = MINIMUM  #: How far from `null` is above or below, in the same unit.
    part: Annotated[str, _one_of(PARTS)] = (
        "claim"  #: `"claim"`, or `"left-out"` of what the report did not do.
    )
    lacks: str = ""  #: What is missing to test it at all; empty: nothing.
    #: Smallest step of the report's instrument, in the unit of the claim: a number, or an expression over our
    #: runs; 0: not stated.
    resolution: Annotated[float | Measure, BeforeValidator(_resolution)] = 0.0
    #: Further statements of the report that follow from the same fact: `where`, `text` and, where it gives
    #: one, the figure as `stated`.
    also: Annotated[tuple[Mapping[str, str], ...], BeforeValidator(_also)] = ()


@dataclass(frozen=True, config=FROM_FILE)
class Redrawn:
    """A table or chart of the report, to be drawn beside ours."""

    kind: ClassVar[str] = "table"  #: A value per row and column.
    #: `where`, `title`, `unit`, `note`: In the report; for people.
    where: str
    title: str
    #: `rows`, `columns`: What `{row}` and `{column}` stand for.
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    #: `ours`, `published`: Expressions with `{row}` and `{column}`; `published` may be empty.
    ours: str
    on: Sets  #: Sets of runs.
    published: str = ""
    unit: str = ""
    note: Line = ""
    is_log: Annotated[Truth, Field(alias="log")] = False  #: Whether its chart has a logarithmic axis.
    is_shared: Annotated[Truth, Field(alias="shared")] = (
        False  #: Whether all sources are drawn in one scale, however far apart they are.
    )
    is_folded: Annotated[Truth, Field(alias="folded")] = False  #: Whether a reader unfolds it.
    #: `rows_are`, `columns_are`: What the rows and the columns are, such as `"scheduler"` and `"processes"`.
    rows_are: str = ""
    columns_are: str = ""


@dataclass(frozen=True, config=FROM_FILE)
class Box(Redrawn):
    """A distribution per row."""

    kind: ClassVar[str] = "box"


@dataclass(frozen=True, config=FROM_FILE)
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
    setup: Paragraphs
    done: Paragraphs
    runs: Mapping[str, Runs]  #: By name, in their order.
    claims: tuple[Claim, ...]  #: In their order.
    redrawn: tuple[Redrawn, ...]  #: In their order.
    concludes: Line = ""
    #: The set of runs that claims are decided on, named before anything is run; empty: none is.
    primary: str = ""
    primary_why: Line = ""  #: Why that one, in a sentence.
    #: Sets whose distance from the published numbers is compared, the primary among them.
    candidates: tuple[str, ...] = ()
    #: What rows and columns of its tables are, where one does not say it.
    rows_are: str = ""
    columns_are: str = ""

    def decided_on(self, claim: Claim) -> str:
        """The set of runs that decides a claim: the primary, or the first that it names where it lacks that one."""
        return self.primary if self.primary in claim.on else next(iter(claim.on), "")


# ---- files -----------------------------------------------------------------------


def read_experiment(folder: Path) -> Experiment:
    """Read a report's experiment and its claims."""
    source, claims = (
        read_experiment_file(folder / EXPERIMENT_FILE),
        read_experiment_file(folder / CLAIMS_FILE),
    )
    take_misshapen(source, ("experiment", "runs", "table", "box"), single=("experiment",))
    take_misshapen(claims, ("claim",))
    head, spot = source.values.get("experiment", {}), Spot(source, ("experiment",), "[experiment]")
    runs: dict[str, Runs] = {}
    # A name of a set that cannot be read is no other mistake.
    sets = [str(values.get("name")) for _, values in _tables(source, "runs")]
    for place, values in _tables(source, "runs", "name"):
        each = _read_runs(place, values)
        if each and each.name in runs:
            place.fault(f"'{each.name}' is there twice", "name")
        if each:
            runs[each.name] = each
    given = {"on": sets} | {key: head[key] for key in ("rows_are", "columns_are") if key in head}
    found = {
        "report": int(folder.name.rpartition("-")[2]),
        "folder": folder,
        "runs": runs,
        "claims": _read_claims(claims, runs, sets),
        "redrawn": [
            one
            for model, more in ((Redrawn, {}), (Box, {"columns": [""]}))
            for place, values in _tables(source, model.kind)
            if (one := _read_redrawn(place, model, {**given, **more, **values}, sets))
        ],
    }
    experiment = read_at(spot, Experiment, head, found)
    if experiment:
        _check_primary(spot, experiment, sets)
    faults = [
        fault for each in (source, claims) for fault in sorted(each.faults, key=lambda fault: fault.line or 0)
    ]
    if faults:
        raise SpecError(faults)
    assert experiment
    return experiment


def read_experiment_file(file: Path) -> Source:
    """A TOML file of an experiment."""
    return read_source(file, parse_float=float, hint="experiments/README.md says what it must hold")


def read_at(
    spot: Spot, model: type[Model], values: object, found: Mapping[str, object] = {}, **context: object
) -> Model | None:
    """Read a table of a file; `found` are fields that the file does not have."""
    if isinstance(values, dict):
        fields: Any = getattr(model, "__pydantic_fields__", {})
        own = found.keys() | {name for name, each in fields.items() if each.alias}
        for key in own & values.keys():
            spot.fault(f"unknown key '{key}'", key)
        values = {**values, **found}
    return read_table(model, values, spot.source, at=spot.at, place=spot.place, **context)


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


def _tables(source: Source, key: str, name: str = "") -> list[tuple[Spot, dict[str, Any]]]:
    """Each table of a list, and where it is; in words by the number, and what it says under `name`."""
    return [
        (
            Spot(source, (key, at), f"[[{key}]] {at + 1}" + (f" ({values.get(name, '?')})" if name else "")),
            values,
        )
        for at, values in enumerate(source.values.get(key, []))
    ]


def _read_runs(spot: Spot, values: Mapping[str, Any]) -> Runs | None:
    """One `[[runs]]`, with options of `schedlab run` by their words in Python."""
    words = {option.word for option in OPTIONS.values()}
    host = values.get("host", "sim")
    if "host" not in values:
        spot.fault("key 'host' is missing")
    elif host not in HOST_NAMES:
        spot.fault(f"host = '{host}' is none of {', '.join(HOST_NAMES)}{did_you_mean(str(host), HOST_NAMES)}")
    given = {key: values[key] for key in words & values.keys()}
    machine, execution, problems = read_options({**given, "host": host if host in HOST_NAMES else "sim"})
    flags = {option.flag: option.word for option in OPTIONS.values()}
    for problem in problems + why_no_option(machine, execution):
        spot.fault(problem, flags.get(problem.split()[0].rstrip(":"), "host"))
    rest = {key: value for key, value in values.items() if key not in words}
    for key in rest.keys() & {"quick", "full"}:
        inner = Spot(spot.source, (*spot.at, key), f"{spot.place}.{key}")
        size = rest[key] = read_at(inner, Size, rest[key])
        if size and (size.seeds < 1 or not 0 < size.scale < math.inf):
            inner.fault(f"seeds must be at least 1 and scale above 0 (got {size.seeds}, {size.scale:g})")
    if None in rest.values():
        return None
    runs = read_at(spot, Runs, rest, {"machine": machine, "execution": execution})
    if runs:
        _check_runs(spot, runs)
    return runs


def _check_runs(spot: Spot, runs: Runs) -> None:
    """What the keys of a set of runs must be together."""
    if not runs.workloads:
        spot.fault("needs workloads; of a program, the arguments of each")
    if not runs.policies or not all(text.split() for text in runs.policies.values()):
        spot.fault("policies must name at least one, and each of them")
    if not runs.rt_throttling and runs.host != "linux":
        spot.fault(f"rt_throttling is Linux's; host = '{runs.host}' must be 'linux'")
    if runs.program and runs.host != "kernel":
        spot.fault(f"program runs in the teaching kernel; host = '{runs.host}' must be 'kernel'")
    for words in runs.arguments:
        if not runs.program or not re.fullmatch(r"\w+=\S+", words):
            spot.fault(
                f"arguments: '{words}' must be a boot argument NAME=VALUE of the kernel, and program what it runs"
            )
    if not runs.name.replace("-", "_").isidentifier():
        spot.fault(f"name = '{runs.name}' must be a word, as expressions use it")


def _check_primary(spot: Spot, made: Experiment, sets: Collection[str]) -> None:
    """The set that decides, why, and those that it was chosen from."""
    for name in (*filter(None, [made.primary]), *made.candidates):
        if name not in sets:
            spot.fault(f"primary, candidates: there is no set of runs '{name}'{did_you_mean(name, sets)}")
    if made.primary and not made.primary_why:
        spot.fault(f"primary = '{made.primary}' needs primary_why, a sentence that says why this set decides")
    if made.candidates and made.primary not in made.candidates:
        spot.fault(f"candidates must have the primary, '{made.primary}', among them")


def _read_claims(source: Source, runs: Mapping[str, Runs], sets: Collection[str]) -> tuple[Claim, ...]:
    """All rows of `claims.toml`."""
    claims: dict[str, Claim] = {}
    for spot, values in _tables(source, "claim", "id"):
        # What cannot be tested yet has no measure.
        more: dict[str, Any] = {"ours": "", "measure": "", "on": []} if values.get("lacks") else {"on": sets}
        claim = read_at(spot, Claim, more | values, runs=sets)
        if claim is None:
            continue
        if claim.name in claims:
            spot.fault(f"id '{claim.name}' is there twice")
        _check_claim(spot, claim, runs)
        claims[claim.name] = claim
    return tuple(claims.values())


def _check_claim(spot: Spot, claim: Claim, runs: Mapping[str, Runs]) -> None:
    """What a claim's keys must be together, before hours of runs go into it."""
    if not claim.name.replace("-", "_").isidentifier():
        spot.fault(f"id = '{claim.name}' must be a word, as links use it")
    for key in ("within", "margin", "minimum", "null"):
        value = getattr(claim, key)
        if value is not None and not (math.isfinite(value) and (value >= 0 or key == "null")):
            spot.fault(f"{key} = {value:g} must be a number{'' if key == 'null' else ', 0 or more'}")
    if claim.lacks:
        return
    if claim.says and claim.null is None:
        spot.fault(
            f"says = '{claim.says}' needs null, the value of no effect: 1 of a ratio, 0 of a difference"
        )
    if not claim.published and not claim.says:
        spot.fault("nothing decides it: give published, says, or both")
    if not claim.on:
        spot.fault("on names no set of runs; leave it out for all of them")
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
                        spot.fault(f"{key}: '{on}' has no {what} '{word}'{did_you_mean(word, known)}")


def _read_redrawn(spot: Spot, model: type[Redrawn], values: object, sets: Collection[str]) -> Redrawn | None:
    """One `[[table]]` or `[[box]]`."""
    redrawn = read_at(spot, model, values, runs=sets)
    if redrawn and redrawn.rows and redrawn.columns:
        try:
            Measure(fill(redrawn.ours, redrawn.rows[0], redrawn.columns[0]), sets=tuple(sets))
        except ValueError as error:
            spot.fault(f"ours: {error}")
    return redrawn


def fill(text: str, row: str, column: str) -> str:
    """Put a row and a column into an expression.

    >>> fill("response['{row}', '{column}']", "RR", "cpu")
    "response['RR', 'cpu']"
    """
    return text.replace("{row}", row).replace("{column}", column)
