# SPDX-License-Identifier: MIT
"""The smallest workload on which a submission fails a test in the same way, with its picture.

        the workload's file -> tables as values -> simpler values, as long as the test fails alike

The graded run had its pids shuffled; an example has not, since `schedlab run` is to repeat
it. Where the failure needs the shuffled pids there is none, and the page says so.

Invariant: the number of trials is limited, not the time: the example is the same on each machine.
Read next: pages.py; check/shrink.py, which does this for worlds that are drawn.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..check.trial import Finding
from ..errors import SchedlabError
from ..plots.gantt import WAITED, draw_svg, in_window
from ..policy.build import BuiltPolicy
from ..program.compiler import compile_workload
from ..records.file import Records, read_records
from ..toml_file import read_source
from ..units import format_duration, parse_duration
from ..workload.spec import parse_workload
from ..workload.toml_text import write_toml
from .assignment import Graded, Test
from .decide import apply
from .runs import Bench, Fact, needs_of_test
from .variants import TRIAL

#: Rules whose failure one run can show.
SHOWN = ("runs", "wait_max", "work_conserving", "shares", "finish")
TRIALS_MAX = 80
HORIZON_NS_MIN, HORIZON_STEP_NS = 20_000_000, 5_000_000
WINDOW_NS = 200_000_000
_DRAWN = re.compile(r"^\w+\(([^,)]+)[,)].*$")
_KEPT = ("name", "phases", "count", "tickets", "weight")


@dataclass(frozen=True)
class Example:
    """A counter-example."""

    test: str  #: Which test it fails.
    text: str  #: How.
    toml: str  #: The workload.
    #: `seed`, `n_cpus`: With which it is run.
    seed: int
    n_cpus: int
    svg: str  #: Which task had a CPU when; empty where the run has left no records.
    n_trials: int  #: Workloads that were tried for it.


class _Shrinker:
    """Tries workloads for one test of one submission."""

    def __init__(self, bench: Bench, built: BuiltPolicy, test: Test, graded: Graded):
        self.bench = bench
        self.built = built
        self.test = test
        self.graded = graded
        self.folder = bench.folder
        self.n_trials = 0
        self.signature: str | None = None

    def fails(self, values: dict[str, Any], seed: int) -> str | None:
        """How the submission fails on a workload, in the way it has first done; None: it does not."""
        self.n_trials += 1
        try:
            workload = parse_workload(write_toml(values), name="example.toml")
            program = compile_workload(workload, seed=seed)
        except SchedlabError:
            return None
        if workload.cpus_min > self.graded.n_cpus:
            return None
        path = self.folder / "example.slprog"
        path.write_bytes(program.data)
        names = program.tasks["name"].tolist()
        fact = self.bench.run(
            self.built, replace(self.graded, workload=workload), program, path, names,
            needs=needs_of_test(self.test), variant=TRIAL, seed=seed, records=self.folder / "example.slr",
        )  # fmt: skip
        return self._alike(fact)

    def _alike(self, fact: Fact) -> str | None:
        text = fact.error
        if text is None:
            part = apply(self.test, self.graded.name, [fact], {})
            if part.level == 0:
                return None
            text, kind = part.text, ""
        else:
            kind = Finding(fact.error_kind or "", text, 0).signature
        if self.signature is None:
            self.signature = kind
        return text if kind == self.signature else None

    def shrink(self, values: dict[str, Any], seed: int) -> tuple[dict[str, Any], int, str] | None:
        """The smallest workload and its seed, and how it fails; None: the first does not fail."""
        text = self.fails(values, seed)
        if text is None:
            return None
        is_smaller = has_seed = self.test.rule != "finish"
        while is_smaller and self.n_trials < TRIALS_MAX:
            is_smaller = False
            for simpler in simpler_values(values, keeps_time=self.test.rule == "shares"):
                found = self.fails(simpler, seed)
                if found is not None:
                    values, text, is_smaller = simpler, found, True
                    break
                if self.n_trials >= TRIALS_MAX:
                    break
        if has_seed and self.fails(values, 1):
            seed = 1
        # The picture and the text are of the last run.
        text = self.fails(values, seed) or text
        return values, seed, text


def find_example(bench: Bench, built: BuiltPolicy, number: int, name: str, variant: int) -> Example | None:
    """Find the smallest workload on which a submission fails a test.

    It fails test `number` of the assignment on a variant of workload `name`. None where it does not fail
    without shuffled pids, or the workload is no TOML file.
    """
    test, graded = bench.assignment.tests[number], bench.assignment.workloads[name]
    path = graded.workload.path
    if test.rule not in SHOWN or path is None or path.suffix != ".toml":
        return None
    values = read_source(path).values
    for name, param in graded.workload.params.items():
        values["params"][name]["default"] = param.text
    values.pop("expected", None)
    shrinker = _Shrinker(bench, built, test, graded)
    found = shrinker.shrink(values, bench.seed(name, variant))
    if found is None:
        return None
    values, seed, text = found
    values["workload"] = _head(values.get("workload", {}), test)
    return Example(
        test=test.name,
        text=text,
        toml=write_toml(values),
        seed=seed,
        n_cpus=graded.n_cpus,
        svg=_picture(bench.folder / "example.slr", values, seed, is_wait=test.rule == "wait_max"),
        n_trials=shrinker.n_trials,
    )


def _head(head: dict[str, Any], test: Test) -> dict[str, Any]:
    """The first table of an example: its own words instead of the workload's."""
    kept = {key: value for key, value in head.items() if key not in ("name", "source", "description")}
    return kept | {"title": f"Counter-example: {test.name}", "question": "Why does it fail?"}


def simpler_values(values: dict[str, Any], *, keeps_time: bool = False) -> Iterator[dict[str, Any]]:
    """List workloads that are simpler by one step, those that save most first.

    `values` are a workload as `toml_file.py` reads it; some of what comes out is no valid one.
    `keeps_time`: it has to last as long, since over a few slices no policy keeps shares.
    """
    horizon = values.get("workload", {}).get("horizon")
    horizon_ns = parse_duration(horizon) if isinstance(horizon, str) else 4_000_000_000
    shorter_ns = horizon_ns // 2 // HORIZON_STEP_NS * HORIZON_STEP_NS
    if shorter_ns >= HORIZON_NS_MIN and not keeps_time:
        yield _changed(values, ("workload", "horizon"), format_duration(shorter_ns))
    tasks = values.get("task", [])
    for index in range(len(tasks)):
        if len(tasks) > 1:
            yield _changed(values, ("task", index), None)
    for index, task in enumerate(tasks):
        count = task.get("count")
        if isinstance(count, int) and count > 1:
            for fewer in dict.fromkeys((1, count // 2, count - 1)):
                yield _changed(values, ("task", index, "count"), fewer)
    for name, param in values.get("params", {}).items():
        default = str(param.get("default", ""))
        if default.isdigit() and int(default) > 1:
            yield _changed(values, ("params", name, "default"), int(default) // 2)
    for index, task in enumerate(tasks):
        yield from _simpler_phases(values, ("task", index, "phases"), task.get("phases", []))
        for key in task:
            if key not in _KEPT:
                yield _changed(values, ("task", index, key), None)


def _simpler_phases(
    values: dict[str, Any], at: tuple[str | int, ...], phases: Any
) -> Iterator[dict[str, Any]]:
    """Fewer rounds and phases, and constants for what is drawn."""
    if not isinstance(phases, list):
        return
    for index, phase in enumerate(phases):
        if len(phases) > 1:
            yield _changed(values, (*at, index), None)
        if not isinstance(phase, dict):
            continue
        rounds = phase.get("loop")
        if isinstance(rounds, int) and rounds > 1:
            yield _changed(values, (*at, index, "loop"), rounds // 2)
        for key, value in phase.items():
            drawn = _DRAWN.match(value) if isinstance(value, str) else None
            if drawn:
                yield _changed(values, (*at, index, key), drawn[1])
        yield from _simpler_phases(values, (*at, index, "do"), phase.get("do"))


def _changed(values: dict[str, Any], at: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """The same with another value at one place; None: without it."""
    made = copy.deepcopy(values)
    table: Any = made
    for key in at[:-1]:
        table = table[key]
    if value is None:
        del table[at[-1]]
    else:
        table[at[-1]] = value
    return made


def _picture(path: Path, values: dict[str, Any], seed: int, *, is_wait: bool) -> str:
    """Which task had a CPU when, around the failure; empty where there are no records."""
    try:
        records = read_records(path)
        program = compile_workload(parse_workload(write_toml(values), name="example.toml"), seed=seed)
        names = dict(enumerate(program.tasks["name"].tolist(), 1))
        begin_ns, end_ns = _window(records, is_wait=is_wait)
        return draw_svg(records, names=names, begin_ns=begin_ns, end_ns=end_ns, width_px=900)
    except (SchedlabError, OSError, ValueError):
        return ""


def _window(records: Records, *, is_wait: bool) -> tuple[int, int]:
    """The longest wait with a fifth of it on both sides; else the end of the run."""
    if is_wait:
        found = in_window(records)
        waits = (found.end_ns - found.begin_ns) * (found.state == WAITED)
        longest = int(waits.argmax())
        margin = int(waits[longest]) // 5 + 1
        return max(0, int(found.begin_ns[longest]) - margin), int(found.end_ns[longest]) + margin
    return max(0, records.end_ns - WINDOW_NS), max(1, records.end_ns)
