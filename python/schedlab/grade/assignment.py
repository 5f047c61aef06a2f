# SPDX-License-Identifier: MIT
"""Read `assignment.toml`: the question, its workloads, and what each test is worth.

A test has one rule: a key of `RULES` with its limit. `partial` lists weaker limits that
are worth fewer points; with `each`, every workload of the test decides over its own part.
What is about the teaching kernel names programs that run in it, or workloads with
`host = "kernel"`; with `patches`, a submission is a patch of its files, not a policy.

Invariant: an error names the file and the line, and nothing has run then.
Read next: variants.py; runs.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from ..errors import NotFoundError, SchedlabError, SpecError, UnitError, did_you_mean
from ..hosts.kernel.boot import CPUS_MAX as KERNEL_CPUS_MAX
from ..metrics.dictionary import find_metric
from ..model import CPUS_MAX
from ..policy.find import find_policy, list_policies
from ..toml_file import Source, Spot, read_source
from ..units import parse_count, parse_duration
from ..workload.find import load_workload
from ..workload.model import Workload
from ..workload.tables import Duration, Name, Table, Text, read_table

#: Rules by their key: the key of the limit, for rules that have one, and what is held.
RULES = {
    "runs": (None, "each run comes to its end"),
    "wait_max": ("wait_max", "no task waits longer for a CPU"),
    "work_conserving": (None, "no CPU is idle beside a task that may run there"),
    "shares": ("within", "tasks get CPU time in proportion"),
    "finish": (None, "tasks end exactly then"),
    "at_most": ("at_most", "a metric's mean over the seeds"),
    "at_least": ("at_least", "a metric's mean over the seeds"),
    "better_than": ("by", "a metric is better than under another policy"),
    "lines_max": ("lines_max", "lines of the submission"),
    "cost_max": ("cost_max", "instructions of the policy per decision"),
    "prints": (None, "a program in the teaching kernel prints these lines, in this order"),
}
#: Of workloads in the sandbox alone: the kernel's instructions are time there, and are not counted.
OF_SANDBOX = ("finish", "cost_max")
#: What a patch may change: files below these, given by patterns.
PATCHED = ("hosts/kernel/kernel/", "hosts/kernel/user/")
#: Rules about the file or about all of its runs, not about single workloads.
OF_SUBMISSION = ("lines_max",)
SEEDS_MAX = 1000


def _share(value: object) -> float:
    """Read a share, such as "20%" or 0.2."""
    text = str(value).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share < 10:
        raise UnitError(f'must be a share, such as "20%" (got {value!r})')
    return share


def _points(value: object) -> float:
    text = str(value)
    if isinstance(value, bool | str) or not text.replace(".", "", 1).isdigit():
        raise UnitError(f"must be a number of points, 0 or more (got {value!r})")
    return float(text)


def _count(maximum: int) -> BeforeValidator:
    return BeforeValidator(lambda value: parse_count(value, minimum=1, maximum=maximum))


def _number(value: object) -> float:
    """Read a number, or a time, which is in nanoseconds then."""
    if isinstance(value, str):
        return float(parse_duration(value))
    return float(str(value))


Points = Annotated[float, BeforeValidator(_points)]
Share = Annotated[float, BeforeValidator(_share)]
Number = Annotated[float, BeforeValidator(_number)]


class AssignmentTable(Table):
    """``[assignment]``."""

    title: Text
    question: Text
    starter: Text | None = None
    seeds: Annotated[int, _count(SEEDS_MAX)] = 20
    variants: Annotated[int | None, _count(10 * SEEDS_MAX)] = None
    timeout: Duration = 60_000_000_000
    patches: list[Text] | None = None
    policy: Text = "rr"


class GradedWorkloadTable(Table):
    """``[[workload]]``."""

    name: Name
    source: Text
    cpus: Annotated[int | None, _count(CPUS_MAX)] = None
    hidden: bool = False
    host: Literal["wasm", "kernel"] = "wasm"


class GradedProgramTable(Table):
    """``[[program]]``."""

    name: Name
    source: Text
    arguments: tuple[Text, ...] = ()
    cpus: Annotated[int, _count(KERNEL_CPUS_MAX)] = 1
    hidden: bool = False


class _Limits(Table):
    """What a test may limit, and `partial` may limit less."""

    points: Points
    wait_max: Duration | None = None
    within: Share | None = None
    at_most: Number | None = None
    at_least: Number | None = None
    by: Share | None = None
    lines_max: Annotated[int | None, _count(1_000_000)] = None
    cost_max: Annotated[int | None, _count(10**12)] = None


class TestTable(_Limits):
    """``[[test]]``."""

    name: Text
    about: Text | None = None
    workloads: list[str] | None = None
    programs: list[str] | None = None
    prints: list[Text] | None = None
    hidden: bool = False
    each: bool = False
    partial: tuple[dict[str, Any], ...] = ()
    runs: bool = False
    work_conserving: bool = False
    shares: Text | None = None
    tasks: list[str] | None = None
    finish: dict[str, Duration] | None = None
    metric: Text | None = None
    better_than: Text | None = None


@dataclass(frozen=True)
class Graded:
    """A workload of an assignment."""

    name: str  #: What students and tests call it.
    workload: Workload = field(repr=False)  #: Checked.
    n_cpus: int  #: CPUs that it is run on.
    is_hidden: bool  #: Whether students see its name.
    is_in_kernel: bool = False  #: Whether it is run in the teaching kernel, not in the sandbox.


@dataclass(frozen=True)
class GradedProgram:
    """A program of an assignment, for the teaching kernel."""

    name: str  #: What students and tests call it.
    path: Path  #: Its C file.
    arguments: tuple[str, ...]  #: What it is given.
    n_cpus: int  #: CPUs that it is run on.
    policy: str  #: What schedules it; empty: the submission.
    is_hidden: bool  #: Whether students see its name.


@dataclass(frozen=True)
class Level:
    """What a limit is worth, where a test has one: `points` of the test's own."""

    points: float
    limit: float | None


@dataclass(frozen=True)
class Test:
    """One test."""

    #: `name`, `about`: For people.
    name: str
    about: str
    rule: str  #: Of `RULES`.
    points: float  #: At most.
    levels: tuple[Level, ...]  #: From the strictest limit on.
    workloads: tuple[str, ...]  #: Names of workloads or programs; empty for a rule of `OF_SUBMISSION`.
    is_hidden: bool = False  #: Whether students see only its points.
    is_split: bool = False  #: Whether each workload decides over its own part of the points.
    #: `metric`, `baseline`: Of rules about a metric: its name; the other policy.
    metric: str = ""
    baseline: str = ""
    shares_by: str = ""  #: `"weight"` or `"tickets"`.
    tasks: tuple[str, ...] = ()  #: Whose shares; empty: all.
    finish_ns: Mapping[str, int] = field(default_factory=dict)  #: By task.
    prints: tuple[str, ...] = ()  #: Patterns, each of a whole line.

    @property
    def limit(self) -> float:
        """The strictest limit, of a rule that has one."""
        limit = self.levels[0].limit
        assert limit is not None, "a rule without a limit asks for none"
        return limit


@dataclass(frozen=True)
class Assignment:
    """An assignment, checked."""

    path: Path  #: Its file.
    #: `title`, `question`: For people.
    title: str
    question: str
    starter: Path | None  #: The file that students begin with.
    n_seeds: int  #: Runs per student and workload.
    n_variants: int  #: From how many variants of each workload a student's are drawn.
    timeout_seconds: float  #: Longest time on the wall clock for one run.
    workloads: Mapping[str, Graded]  #: In the order of the file.
    tests: tuple[Test, ...]  #: In the order of the file.
    programs: Mapping[str, GradedProgram] = field(default_factory=dict)  #: In the order of the file.
    #: Patterns of the kernel's files that a submission is a patch of; empty: it is a policy.
    patches: tuple[str, ...] = ()
    policy: str = "rr"  #: What schedules a patched kernel.

    @property
    def suffix(self) -> str:
        """How the name of a submission ends."""
        return ".patch" if self.patches else ".bpf.c"

    @property
    def is_about_kernel(self) -> bool:
        """Whether anything is run in the teaching kernel."""
        return bool(self.programs) or any(each.is_in_kernel for each in self.workloads.values())

    def is_hidden(self, name: str) -> bool:
        """Whether students see nothing of a workload or program."""
        return (self.workloads.get(name) or self.programs[name]).is_hidden

    @property
    def points(self) -> float:
        """Of all tests together."""
        return sum(test.points for test in self.tests)

    @property
    def baselines(self) -> dict[str, tuple[str, ...]]:
        """Other policies that are run, each with its workloads."""
        found: dict[str, list[str]] = {}
        for test in self.tests:
            if test.baseline:
                found.setdefault(test.baseline, []).extend(test.workloads)
        return {name: tuple(dict.fromkeys(names)) for name, names in found.items()}


def read_assignment(path: Path) -> Assignment:
    """Read an assignment.

    What the file names is looked for beside it, then among schedlab's own. A SpecError lists all mistakes,
    each with its line.
    """
    source = read_source(path)
    known = ("assignment", "workload", "program", "test")
    for key in source.values:
        if key not in known:
            source.fault((key,), "", f"unknown table {key!r}{did_you_mean(key, known)}")
    top = Spot(source, ("assignment",), "assignment")
    head = _table(AssignmentTable, top, source.values.get("assignment", {}))
    works = _workloads(source, path.parent)
    patches = tuple(head.patches or ()) if head is not None else ()
    programs = _programs(source, path.parent, works, head.policy if head is not None and patches else "")
    tests = [
        test
        for index, values in _list(source, "test")
        if (test := _test(source, index, values, works, programs, path.parent)) is not None
    ]
    for key, found in (("workload", works or programs), ("test", tests)):
        if not found and key not in source.values:
            source.fault((), "", f"no [[{key}]]: an assignment has at least one")
    if patches:
        _check_patches(top, patches, works, head.policy)
    starter = None
    if head is not None and head.starter is not None:
        starter = path.parent / head.starter
        if not starter.is_file():
            top.fault(f"starter: no such file {starter}")
    source.check()
    assert head is not None
    return Assignment(
        path=path,
        title=head.title,
        question=head.question,
        starter=starter,
        n_seeds=head.seeds,
        n_variants=max(head.seeds, head.variants or 5 * head.seeds),
        timeout_seconds=head.timeout / 1e9,
        workloads=works,
        tests=tuple(tests),
        programs=programs,
        patches=patches,
        policy=head.policy,
    )


def _table(model: Any, spot: Spot, values: object) -> Any:
    return read_table(model, values, spot.source, at=spot.at, place=spot.place, tick_ns=10_000_000)


def _list(source: Source, key: str) -> list[tuple[int, Any]]:
    values = source.values.get(key, [])
    if not isinstance(values, list):
        source.fault((key,), "", f"must be a list of tables, [[{key}]]")
        return []
    return list(enumerate(values))


def _named_tables(source: Source, key: str, model: Any) -> Iterator[tuple[Spot, Any]]:
    """Each table of a list that is right by itself, and where it is."""
    for index, values in _list(source, key):
        place = f"{key} {values.get('name', index + 1) if isinstance(values, dict) else index + 1}"
        spot = Spot(source, (key, index), place)
        if (table := _table(model, spot, values)) is not None:
            yield spot, table


def _workloads(source: Source, folder: Path) -> dict[str, Graded]:
    """All `[[workload]]`."""
    found: dict[str, Graded] = {}
    for spot, table in _named_tables(source, "workload", GradedWorkloadTable):
        if table.name in found:
            spot.fault(f"name: {table.name!r} is given twice")
        beside = folder / table.source
        is_file = table.source.partition(":")[0].endswith((".toml", ".csv", ".json"))
        try:
            workload = load_workload(str(beside) if is_file else table.source)
        except SpecError as error:
            source.faults.extend(error.faults)
            continue
        except SchedlabError as error:
            spot.fault(f"source: {error}")
            continue
        if workload.happens:
            spot.fault(f"source: it has {workload.happens}, which grading does not; leave them out")
        n_cpus = table.cpus or max(workload.cpus, workload.cpus_min, 1)
        if n_cpus < workload.cpus_min:
            spot.fault(f"cpus: it needs at least {workload.cpus_min} (got {n_cpus})")
        if table.host == "kernel" and n_cpus > KERNEL_CPUS_MAX:
            spot.fault(f"cpus: the kernel has at most {KERNEL_CPUS_MAX} (got {n_cpus})")
        found[table.name] = Graded(table.name, workload, n_cpus, table.hidden, table.host == "kernel")
    return found


def _programs(
    source: Source, folder: Path, works: Mapping[str, Graded], policy: str
) -> dict[str, GradedProgram]:
    """All `[[program]]`."""
    found: dict[str, GradedProgram] = {}
    for spot, table in _named_tables(source, "program", GradedProgramTable):
        path = folder / table.source
        if table.name in found or table.name in works:
            spot.fault(f"name: {table.name!r} is given twice")
        elif path.suffix != ".c" or not path.is_file():
            spot.fault(f"source: no C file {path}")
        elif any(re.search(r"\s", word) for word in table.arguments):
            spot.fault("arguments: the kernel takes words without blanks")
        found[table.name] = GradedProgram(table.name, path, table.arguments, table.cpus, policy, table.hidden)
    return found


def _check_patches(top: Spot, patches: Sequence[str], works: Mapping[str, Graded], policy: str) -> None:
    """Hold `patches`, and what goes with it, against what there is."""
    for pattern in patches:
        if not pattern.startswith(PATCHED) or ".." in pattern:
            asked = " or ".join(PATCHED)
            top.fault(f"patches: must be files below {asked} (got {pattern!r})")
    for name, graded in works.items():
        if not graded.is_in_kernel:
            spot = replace(top, place=f"workload {name}")
            spot.fault('a patch is of the teaching kernel: write host = "kernel"', "patches")
    if policy not in list_policies():
        hint = did_you_mean(policy, list_policies())
        top.fault(f"policy: no policy {policy!r}{hint}")


def _test(
    source: Source,
    index: int,
    values: Any,
    works: Mapping[str, Graded],
    programs: Mapping[str, GradedProgram],
    folder: Path,
) -> Test | None:
    """One `[[test]]`; None where anything was wrong with it."""
    name = values.get("name") if isinstance(values, dict) else None
    place = f"test {name!r}" if name else f"test {index + 1}"
    spot = Spot(source, ("test", index), place)
    n_before = len(source.faults)
    table = _table(TestTable, spot, values)
    if table is None:
        return None
    rules = [rule for rule in RULES if getattr(table, rule)]
    if len(rules) != 1:
        got = f"has {' and '.join(rules)}" if rules else "has none"
        spot.fault(f"a test has one of {', '.join(RULES)}; this one {got}")
        return None
    rule = rules[0]
    key = RULES[rule][0]
    for other, needed in (("within", "shares"), ("by", "better_than"), ("tasks", "shares")):
        if getattr(table, other) is not None and rule != needed:
            spot.fault(f"{other}: only a test with {needed!r} has it")
    if key is not None and getattr(table, key) is None:
        spot.fault(f"key {key!r} is missing")
        return None
    names = _names(spot, table, rule, works, programs)
    _check_tasks(spot, table, [works[name] for name in names if name in works])
    metric = _metric(spot, table, rule)
    test = Test(
        name=table.name,
        about=table.about or "",
        rule=rule,
        points=table.points,
        levels=_levels(spot, table, key),
        workloads=names,
        is_hidden=table.hidden,
        is_split=table.each,
        metric=metric,
        baseline=_baseline(spot, table, folder),
        shares_by=table.shares or "",
        tasks=tuple(table.tasks or ()),
        finish_ns=table.finish or {},
        prints=tuple(table.prints or ()),
    )
    return test if len(source.faults) == n_before else None


def _names(
    spot: Spot,
    table: TestTable,
    rule: str,
    works: Mapping[str, Graded],
    programs: Mapping[str, GradedProgram],
) -> tuple[str, ...]:
    """Workloads of a test, or programs for a rule about what they print; default: all."""
    if rule in OF_SUBMISSION:
        return ()
    key, other = ("programs", "workloads") if rule == "prints" else ("workloads", "programs")
    there: Mapping[str, Any] = programs if rule == "prints" else works
    if getattr(table, other) is not None:
        spot.fault(f"{other}: a test with {rule!r} is about {key}")
    named = getattr(table, key)
    for number, name in enumerate(named or ()):
        if name not in there:
            hint = did_you_mean(name, there)
            spot.fault(f"{key}: no [[{key[:-1]}]] {name!r}{hint}", key, number)
        elif rule in OF_SANDBOX and there[name].is_in_kernel:
            spot.fault(f"{rule}: {name} runs in the kernel, which cannot tell", key, number)
    for number, pattern in enumerate(table.prints or ()):
        try:
            re.compile(pattern)
        except re.error as error:
            spot.fault(f"prints: {pattern!r} is no pattern: {error}", "prints", number)
    every = [name for name in there if rule not in OF_SANDBOX or not there[name].is_in_kernel]
    if not every and not named:
        spot.fault(f"no [[{key[:-1]}]] that {rule!r} could be about")
    return tuple(named or every)


def _check_tasks(spot: Spot, table: TestTable, chosen: Sequence[Graded]) -> None:
    """Hold the names of tasks against what there is."""
    for key, names in (("finish", table.finish or ()), ("tasks", table.tasks or ())):
        for name in names:
            for each in chosen:
                tasks = [task.name for task in each.workload.tasks]
                if name not in tasks:
                    hint = did_you_mean(name, tasks)
                    spot.fault(f"{key}: {each.name} has no task {name!r}{hint}")
    if table.shares is not None and table.shares not in ("weight", "tickets"):
        spot.fault(f"shares: must be weight or tickets (got {table.shares!r})")


def _metric(spot: Spot, table: TestTable, rule: str) -> str:
    """The metric's whole name; empty where the rule has none."""
    if rule not in ("at_most", "at_least", "better_than"):
        if table.metric is not None:
            spot.fault(f"metric: a test with {rule!r} has none")
        return ""
    if table.metric is None:
        spot.fault("key 'metric' is missing")
        return ""
    try:
        metric = find_metric(table.metric)
    except NotFoundError as error:
        spot.fault(f"metric: {error}")
        return ""
    if metric.level != "run" or (rule == "better_than" and metric.direction == "none"):
        spot.fault(f"metric: {metric.name} is none of a run that can be better")
    return metric.name


def _baseline(spot: Spot, table: TestTable, folder: Path) -> str:
    """The other policy as `load_policy` takes it; empty: none."""
    if table.better_than is None:
        return ""
    is_file = table.better_than.endswith(".c")
    named = str(folder / table.better_than) if is_file else table.better_than
    try:
        find_policy(named)
    except SchedlabError as error:
        spot.fault(f"better_than: {error}")
    return named


def _levels(spot: Spot, table: TestTable, key: str | None) -> tuple[Level, ...]:
    """The test's own limit, then those of `partial`, which are weaker and worth less."""
    levels = [Level(table.points, None if key is None else float(getattr(table, key)))]
    is_upward = key in ("by", "at_least")  # a larger limit is the stricter one
    for number, values in enumerate(table.partial):
        where = replace(spot, at=(*spot.at, "partial", number))
        if key is None:
            where.fault(f"partial: {table.name!r} has no limit that could be weaker; use each = true")
            break
        less = _table(_Limits, replace(where, place=f"{spot.place}, partial {number + 1}"), values)
        if less is None:
            continue
        limit = getattr(less, key)
        if limit is None:
            where.fault(f"partial: key {key!r} is missing")
            continue
        before = levels[-1]
        assert before.limit is not None
        if less.points >= before.points or (limit >= before.limit if is_upward else limit <= before.limit):
            where.fault(f"partial: {key} must be weaker and worth less than the one before")
        levels.append(Level(less.points, float(limit)))
    return tuple(levels)
